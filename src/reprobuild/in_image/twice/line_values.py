"""Digests of the values that a statement reads and writes, fast and bounded, for a trace of lines.

Nothing of the program's own runs: no ``repr``, no ``==`` and no property of its classes. Of an object counts
what it holds; of what no Python code can look into, its type alone. A large array counts by samples.
"""

from __future__ import annotations

import pickle
import sys
import zlib
from collections.abc import Sequence
from hashlib import blake2b
from itertools import chain, islice
from typing import Any

from .held_values import (
    LISTS,
    MISSING,
    attribute_of,
    can_be_pickled,
    held_by,
    is_opaque,
    rows_of,
    slots_of,
    state_of,
)
from .identities import Identities

MOST_NODES = 3000
"""Values in one value."""
DEPTH = 6
SAMPLE = 1 << 16
"""Bytes of an array that are read whole; of a larger one three such pieces and every so many elements."""
FEW = 8
"""Values of a short sequence."""
MANY = 1 << 16
"""Numbers and texts in lists of a list up to which these are read at once."""
LARGEST = 64 << 20
"""Bytes of a tensor that is looked at."""
LARGE_SET = 500
"""Objects of a set up to which each is looked at."""
_HASHES = (
    "_hashlib",
    "_blake2",
    "_md5",
    "_sha1",
    "_sha2",
    "_sha256",
    "_sha512",
    "_sha3",
    "xxhash",
    "_xxhash",
)
"""Modules of hashlib's objects, which tell what they were given by a digest."""
looked_at = [0]
"""How many values were looked at by now."""
MOST_DUMPS = 100
"""Pickles of objects of one type in a process."""
_dumped: dict[type, int] = {}
_identities = Identities()
_SCALARS = (bool, int, float, complex, type(None))
_LEAVES = frozenset((*_SCALARS, str, bytes))
_TEXT = ("datetime", "decimal", "fractions", "uuid", "pathlib", "ipaddress")
"""Modules whose values say themselves by their text, and have no other state."""
SMALL = "~"
"""Before the digest of a value so small that another one is equal by chance."""


_MACHINERY = (
    "multiprocessing",
    "threading",
    "subprocess",
    "concurrent",
    "asyncio",
    "queue",
    "_queue",
    "tempfile",
)
"""Modules whose objects have numbers and keys of their process; what they were given counts."""
_GIVEN = ("_args", "_kwargs", "args", "_initargs")
_LEFT_OUT = ("logging", "socket", "numba", "ssl", "weakref", "_weakref", "_thread")
"""Modules whose objects count by their type."""


def generators() -> dict[str, str]:
    """Return the digests of the states of the generators that modules have, of those that are there."""
    found = {}
    for name in ("random", "numpy.random", "torch"):
        state = _state_of_module(name)
        if state:
            found[name] = f"{zlib.crc32(state):012x}"
    return found


def _state_of_module(name: str) -> bytes:
    module = sys.modules.get(name)
    if module is None:
        return b""
    try:
        if name == "random":
            return b"%d" % hash(module.getstate())
        if name == "torch":
            return bytes(module.get_rng_state().numpy().tobytes())
        given = module.get_state(legacy=False)
        inner = given["state"]
        rest = (inner["pos"], given["has_gauss"], given["gauss"])
        return bytes(inner["key"].tobytes()) + repr(rest).encode()
    except Exception:  # noqa: BLE001 -- half imported, or another generator in its place
        return b""


def plain(value: Any) -> Any:
    """Return a number or a text of a kind of its own, as the recorder makes of times, as a plain one."""
    kind = type(value)
    if kind in (bool, int, float, str):
        return value
    if issubclass(kind, int):
        return int.__int__(value)
    if issubclass(kind, float):
        return float.__float__(value)
    return str.__str__(value) if issubclass(kind, str) else value


def digest(value: Any) -> str:
    """Return the digest of a value; an empty one of a module, a function or a class."""
    value = plain(value)
    if is_opaque(value):
        return ""
    made = _Digest()
    made.add(value, 0)
    looked_at[0] += MOST_NODES - made._left
    found = made.hash.hexdigest()
    few = type(value) in (bool, type(None)) or (
        type(value) in (int, float) and -1000 < value < 1000 and value == int(value)
    )
    return SMALL + found if few else found


def shown(value: Any) -> str:
    """Return a number, a short text or a few of these together as a reader sees them; else nothing."""
    value = plain(value)
    kind = type(value)
    if kind in _SCALARS or kind in (str, bytes):
        return repr(value[:60] if kind in (str, bytes) else value)[:60]
    if kind in (list, tuple, dict):
        return _few(value, 3)[:60]
    if kind.__module__ == "numpy" and hasattr(value, "tobytes"):
        text = repr(value.ravel()[:4].tolist()) if getattr(value, "ndim", 0) else repr(value.item())
        return text[:60]
    if _is_tensor(value):
        try:
            return repr(value.detach().flatten()[:4].tolist())[:60]
        except Exception:  # noqa: BLE001 -- of a type that has no plain values
            return ""
    return ""


def _few(value: Any, depth: int) -> str:
    """Return a few plain values together; nothing if one is of another kind."""
    kind = type(value)
    if kind in (*_SCALARS, str):
        return repr(value)[:30]
    if not depth or kind not in (list, tuple, dict):
        return ""
    pairs = islice(value.items() if kind is dict else zip(value), 6)
    found = [[_few(each, depth - 1) for each in pair] for pair in pairs]
    if not all(map(all, found)):
        return ""
    told = [*map(": ".join, found), *(["…"] if len(value) > 6 else [])]
    left, right = "{}" if kind is dict else "[]"
    return f"{left}{', '.join(told)}{right}"


def objects(value: Any, *, new: bool = False) -> list[int]:
    """Return what tells a value that can change from others of its process, and those in a short one."""
    kind = type(value)
    if kind in _SCALARS or kind in (str, bytes, range) or is_opaque(value):
        return []
    inner = value if kind in (tuple, list) and len(value) <= FEW else ()
    held = (each for each in inner if type(each) not in (*_SCALARS, str, bytes))
    return [_identities.number_of(value, new=new), *map(_identities.number_of, held)]


class _Digest:
    def __init__(self) -> None:
        self.hash = blake2b(digest_size=6)
        self._left = MOST_NODES
        self._seen: dict[int, Any] = {}
        """By their addresses, which no other value may have meanwhile."""

    def add(self, value: Any, depth: int) -> None:
        """Take in a value."""
        self._left -= 1
        value = plain(value)
        kind = type(value)
        if kind in _SCALARS:
            self.hash.update(repr(value).encode())
        elif kind in (str, bytes, bytearray):
            data = value.encode("utf-8", "surrogatepass") if kind is str else bytes(value)
            self.hash.update(b"%s%d:%d" % (kind.__name__.encode(), len(data), zlib.crc32(data)))
        elif self._left <= 0 or depth > DEPTH or is_opaque(value):
            self.hash.update(kind.__qualname__.encode("utf-8", "surrogatepass"))
        elif kind in LISTS or kind is dict:
            self._container(value, kind, depth)
        elif id(value) in self._seen:
            self.hash.update(b"again")
        else:
            self._seen[id(value)] = value
            try:
                self._inside(value, kind, depth)
            except Exception:  # noqa: BLE001 -- a value of any library's: its type counts
                self.hash.update(f"not read {kind.__qualname__}".encode())

    def _inside(self, value: Any, kind: type, depth: int) -> None:
        state = state_of(value)
        if state is not MISSING:
            self.add(state, depth + 1)
        elif kind.__module__ in _HASHES and hasattr(value, "hexdigest"):
            self.hash.update(kind.__name__.encode())
            if not kind.__name__.startswith("HASHXOF"):  # its digest is of any length
                self.hash.update(value.hexdigest().encode())
        elif kind.__module__ == "numpy" and hasattr(value, "tobytes"):
            self._array(value)
        elif _is_tensor(value):
            self._tensor(value, depth)
        elif kind in (range, slice) or kind.__module__ in _TEXT:
            self.hash.update(str(value).encode("utf-8", "surrogatepass"))
        elif kind.__module__.partition(".")[0] in ("pandas", "polars"):
            self._table(value, kind, depth)
        elif not self._container(value, kind, depth):
            self._object(value, kind, depth)

    def _container(self, value: Any, kind: type, depth: int) -> bool:
        if issubclass(kind, dict):
            self.hash.update(b"{%d" % dict.__len__(value))
            if kind is dict and self._at_once(value, [*value, *value.values()]):
                return True
            for key, each in dict.items(value):
                self.add(key, depth + 1)
                self.add(each, depth + 1)
                if self._left <= 0:
                    break
        elif issubclass(kind, (list, tuple)) or kind.__name__ == "deque":
            self.hash.update(b"[%d" % len(value))
            if kind in LISTS and self._at_once(value, value):
                return True
            for each in value:
                self.add(each, depth + 1)
                if self._left <= 0:
                    break
        elif issubclass(kind, (set, frozenset)):
            # Its order is no part of its value: the line that walks through it shows that.
            self.hash.update(b"<%d" % len(value))
            if _LEAVES.issuperset(map(type, value)):
                data = (repr(each).encode("utf-8", "surrogatepass") for each in value)
                self.hash.update(b"%d" % sum(map(zlib.crc32, data)))
            elif len(value) <= LARGE_SET:
                share = self._left // max(1, len(value))
                self.hash.update(b"%d" % sum(self._of_one(each, share, depth) for each in value))
        else:
            return False
        return True

    def _of_one(self, value: Any, share: int, depth: int) -> int:
        """Return a number for one value of a set, of which no more than a share is looked at."""
        inner = _Digest()
        inner._left = share
        inner.add(value, depth + 1)
        self._left -= share - inner._left
        return int.from_bytes(inner.hash.digest(), "big")

    def _at_once(self, value: Any, held: Sequence[Any]) -> bool:
        """Take in a container of numbers and texts, or of lists of these, by its text, which C makes."""
        kinds = set(map(type, held))
        if not kinds <= _LEAVES:
            inner = list(islice(chain.from_iterable(held), MANY)) if kinds <= LISTS else []
            if not inner or len(inner) == MANY or not _LEAVES.issuperset(map(type, inner)):
                return False
            self._left -= len(held)
        self.hash.update(b"%d" % zlib.crc32(repr(value).encode("utf-8", "surrogatepass")))
        return True

    def _object(self, value: Any, kind: type, depth: int) -> None:
        self.hash.update(kind.__qualname__.encode("utf-8", "surrogatepass"))
        home = kind.__module__.partition(".")[0]
        if home in _LEFT_OUT:
            return
        if home in _MACHINERY:
            for name in _GIVEN:
                self.add(held_by(value).get(name), depth + 1)
            return
        if can_be_pickled(value):
            times = _dumped[kind] = _dumped.get(kind, 0) + 1
            data = pickle.dumps(value, 4) if times <= MOST_DUMPS else b""
            self.hash.update(b"%d:%d" % (len(data), zlib.crc32(data)))
            return
        for name, each in list(held_by(value).items()):
            if isinstance(name, str) and not name.startswith("__") and not name.endswith("_hooks"):
                self.hash.update(name.encode("utf-8", "surrogatepass"))
                self.add(each, depth + 1)
        for slot in slots_of(kind):
            self.add(attribute_of(value, slot), depth + 1)

    def _array(self, value: Any) -> None:
        self.hash.update(f"{value.dtype}{value.shape}".encode())
        if value.dtype.hasobject:
            held = value.ravel()[:MANY].tolist()
            if not self._at_once(held, held):
                share = self._left // 8  # a table's other columns count, too
                for each in held[:share]:
                    self.add(each, DEPTH)
            return
        if value.nbytes <= SAMPLE:
            self.hash.update(b"%d" % zlib.crc32(value.tobytes()))
            return
        flat = value.reshape(-1)
        piece = max(1, SAMPLE // value.itemsize)
        stride = max(1, flat.size // piece)
        for part in (flat[:piece], flat[-piece:], flat[::stride]):
            self.hash.update(b"%d" % zlib.crc32(part.tobytes()))

    def _tensor(self, value: Any, depth: int) -> None:
        self.hash.update(f"{value.dtype}{tuple(value.shape)}".encode())
        torch = sys.modules["torch"]
        if value.device.type != "cpu" or value.layout is not torch.strided or value.is_quantized:
            return
        if value.numel() * value.element_size() > LARGEST:
            return
        flat = value.detach().reshape(-1).resolve_conj()
        if flat.dtype is torch.bool:
            flat = flat.to(torch.uint8)
        elif flat.dtype is torch.bfloat16:
            flat = flat.view(torch.int16)
        self._array(flat.numpy())
        if value.requires_grad and value.is_leaf and value.grad is not None:
            self.add(value.grad, depth + 1)

    def _table(self, value: Any, kind: type, depth: int) -> None:
        self.hash.update(kind.__qualname__.encode())
        if kind.__name__ in ("DataFrame", "Series"):
            if kind.__module__.startswith("polars"):
                frame = value if kind.__name__ == "DataFrame" else value.to_frame()
                self.hash.update(f"{frame.schema}".encode("utf-8", "surrogatepass"))
                self._rows(frame, depth)
            elif kind.__name__ == "DataFrame":
                self.add(list(value.columns), depth + 1)
                self.add(value.index.to_numpy(), depth + 1)
                for at in range(min(value.shape[1], 64)):
                    self.add(value.iloc[:, at].to_numpy(), depth + 1)
            else:
                self.add(value.index.to_numpy(), depth + 1)
                self.add(value.to_numpy(), depth + 1)
        elif hasattr(value, "to_numpy"):
            self.add(value.to_numpy(), depth + 1)

    def _rows(self, frame: Any, depth: int) -> None:
        try:
            rows = rows_of(frame)
        except Exception:  # noqa: BLE001 -- columns of a type that has no hash
            rows = None
        if rows is None:
            self.add(frame.to_dict(as_series=False), depth + 1)
        else:
            self.hash.update(b"%d" % zlib.crc32(rows))


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    kind = getattr(torch, "Tensor", None)
    return kind is not None and isinstance(value, kind)
