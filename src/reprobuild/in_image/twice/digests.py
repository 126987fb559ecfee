"""Exact digests: SHA-256 over type, shape and bytes. No norm and no sum, which are blind to an exchange."""

from __future__ import annotations

import base64
import ctypes
import hashlib
import os
import random
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import device_hash

SHORT = 8
"""Bytes of a tensor's own digest in a record; that of a group is whole."""
DEPTH = 8
"""How deep nested values are followed."""
_THREADED = 4 << 20
"""Bytes from which a group is worth several threads; hashlib lets go of the interpreter's lock."""


_PLAIN = (bool, int, float, complex, str, bytes, type(None))

unread: set[str] = set()
"""Types of tensors whose bytes could not be read, which therefore counted as equal."""


class Unreadable(Exception):  # noqa: N818 -- says what, not that something failed
    """A tensor whose bytes cannot be read: of a type that is not known here."""


def capturing(torch: Any) -> bool:
    """Whether operations of this thread go into a CUDA graph, which computes them when it is replayed.

    Until then there are no values, and a copy to the processor makes the program's capture fail
    (https://docs.pytorch.org/docs/stable/notes/cuda.html#constraints).
    """
    return bool(torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())


def plain(torch: Any, value: Any) -> Any:
    """Return a tensor as a dense one in the processor's memory. Raises `Unreadable`."""
    value = dense(torch, value)
    try:
        return value if value.device.type == "cpu" else value.cpu()
    except Exception as error:
        raise Unreadable(type(value).__name__) from error


def dense(torch: Any, value: Any) -> Any:
    """Return a tensor as a dense, contiguous one where it is. Raises `Unreadable`."""
    if value.device.type == "cuda" and capturing(torch):
        raise Unreadable("CUDA graph")
    try:
        value = value.detach()
        if hasattr(value, "to_local"):
            value = value.to_local()
        if value.is_sparse:
            value = value.coalesce()
            value = torch.cat([value.indices().double().flatten(), value.values().double().flatten()])
        elif value.layout is not torch.strided:
            value = value.to_dense()
        if value.is_quantized:
            value = value.int_repr()
        if value.is_conj() or value.is_neg():
            value = value.resolve_conj().resolve_neg()
        return value.contiguous()
    except Exception as error:
        raise Unreadable(type(value).__name__) from error


def raw(value: Any) -> Any:
    """Return the bytes of what `plain` gave, without a copy: valid as long as the caller keeps that."""
    size = value.numel() * value.element_size()
    return (ctypes.c_char * size).from_address(value.data_ptr()) if size else b""


def of_tensor(torch: Any, value: Any) -> bytes:
    """Return the digest of a tensor; of one that cannot be read, a mark that equals itself."""
    found = hashlib.sha256(f"{value.dtype}{tuple(value.shape)}".encode())
    try:
        whole = dense(torch, value)
        if whole.device.type != "cpu":
            return _on_device(torch, [whole])[0]
        found.update(raw(whole))
    except Unreadable as error:
        unread.add(str(error)[:100])
        found.update(f"unreadable {error}".encode())
    return found.digest()


def _on_device(torch: Any, tensors: list[Any]) -> list[bytes]:
    """Return the digests of dense tensors of one device. Raises `Unreadable`."""
    try:
        return device_hash.of_tensors(torch, tensors)
    except Exception as error:
        raise Unreadable(f"{type(tensors[0]).__name__} on {tensors[0].device}") from error


def of_group(torch: Any, tensors: list[Any]) -> tuple[str, str]:
    """Return the digest of all, in hex, and the short ones of each, in base64; None: no tensor."""
    found = _of_devices(torch, tensors)
    here = [None if index in found else tensor for index, tensor in enumerate(tensors)]
    sizes = [0 if t is None else t.numel() * t.element_size() for t in here]
    workers = min(len(os.sched_getaffinity(0)), 8) if sum(sizes) >= _THREADED else 1
    shares: list[list[int]] = [[] for _ in range(workers)]
    filled = [0] * workers
    for index in sorted(range(len(here)), key=lambda i: -sizes[i]):
        if here[index] is not None:
            least = filled.index(min(filled))
            filled[least] += sizes[index]
            shares[least].append(index)

    def work(share: list[int]) -> None:
        for index in share:
            found[index] = of_tensor(torch, tensors[index])

    threads = [threading.Thread(target=work, args=(share,)) for share in shares[1:] if share]
    for thread in threads:
        thread.start()
    work(shares[0])
    for thread in threads:
        thread.join()
    each = [found.get(index, b"\0" * 32) for index in range(len(tensors))]
    return (
        hashlib.sha256(b"".join(each)).hexdigest(),
        base64.b64encode(b"".join(one[:SHORT] for one in each)).decode(),
    )


def _of_devices(torch: Any, tensors: list[Any]) -> dict[int, bytes]:
    """Return the digests of those tensors that are not in the processor's memory, by their index."""
    found: dict[int, bytes] = {}
    devices: dict[str, list[int]] = {}
    for index, tensor in enumerate(tensors):
        if tensor is not None and tensor.device.type not in ("cpu", "meta"):
            devices.setdefault(str(tensor.device), []).append(index)
    for indices in devices.values():
        try:
            given = [dense(torch, tensors[index]) for index in indices]
            found.update(zip(indices, _on_device(torch, given)))
        except Unreadable:  # one of them; of_tensor says which
            found.update((index, of_tensor(torch, tensors[index])) for index in indices)
    return found


def of_value(torch: Any, value: Any, depth: int = 0) -> bytes:
    """Return the digest of a nested value. An object that is not known counts by its type alone."""
    found = hashlib.sha256()
    tensor = torch.Tensor if torch is not None else ()
    if isinstance(value, tensor):
        return of_tensor(torch, value)
    if isinstance(value, _PLAIN):
        found.update(f"{type(value).__name__} {value!r}".encode("utf-8", "surrogatepass"))
    elif depth < DEPTH and isinstance(value, dict):
        for key, each in value.items():
            found.update(of_value(torch, key, depth + 1) + of_value(torch, each, depth + 1))
    elif depth < DEPTH and isinstance(value, (list, tuple)):
        found.update(f"{len(value)}".encode())
        for each in value:
            found.update(of_value(torch, each, depth + 1))
    elif depth < DEPTH and isinstance(value, (set, frozenset)):
        for each in sorted(of_value(torch, each, depth + 1) for each in value):
            found.update(each)
    elif type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
        kind = getattr(value, "dtype", "")
        found.update(f"{kind}{getattr(value, 'shape', ())}".encode())
        found.update(value.tobytes() if str(kind) != "object" else b"objects")
    else:
        _add_object(torch, value, depth, found)
    return found.digest()


def _add_object(torch: Any, value: Any, depth: int, found: Any) -> None:
    if str(type(value)) in ("<class 'torch.dtype'>", "<class 'torch.device'>", "<class 'torch.layout'>"):
        found.update(str(value).encode())
        return
    found.update(f"{type(value).__module__}.{type(value).__qualname__}".encode())
    for name, each in _held(torch, value) if depth < DEPTH else ():
        found.update(name.encode("utf-8", "surrogatepass") + of_value(torch, each, depth + 1))


def _held(torch: Any, value: Any) -> list[tuple[str, Any]]:
    """Return what of an object of a user's or a library's own is data, by name, in the order of its making.

    Of mappings and dataclasses everything; of any other object the tensors and arrays, alone or in lists:
    what else it has may be of the day or the process.
    """
    try:
        if isinstance(value, Mapping):
            return [(str(key), each) for key, each in value.items()]
        fields = getattr(type(value), "__dataclass_fields__", None)
        if fields is not None:
            return [(name, getattr(value, name, None)) for name in fields]
        return [(str(name), each) for name, each in vars(value).items() if _is_data(torch, each)]
    except Exception:  # noqa: BLE001 -- a user's own code
        return []


def _is_data(torch: Any, value: Any, depth: int = 0) -> bool:
    if isinstance(value, (list, tuple)) and depth < DEPTH:
        return bool(value) and all(_is_data(torch, each, depth + 1) for each in value[:64])
    return (torch is not None and isinstance(value, torch.Tensor)) or (
        type(value).__module__ == "numpy" and hasattr(value, "tobytes")
    )


def tensors_in(torch: Any, value: Any, depth: int = 0, *, objects: bool = False) -> list[Any]:
    """Return the tensors of a nested value, in its order; with ``objects`` also those that objects hold."""
    if isinstance(value, torch.Tensor):
        return [value]
    if depth < DEPTH and isinstance(value, dict):
        return [t for each in value.values() for t in tensors_in(torch, each, depth + 1, objects=objects)]
    if depth < DEPTH and isinstance(value, (list, tuple)):
        return [t for each in value for t in tensors_in(torch, each, depth + 1, objects=objects)]
    if depth < DEPTH and objects and not isinstance(value, _PLAIN):
        return [
            t for _, each in _held(torch, value) for t in tensors_in(torch, each, depth + 1, objects=True)
        ]
    return []


def memory_of(tensor: Any) -> int:
    """Return the address of a tensor's storage; its ID where it has no single one, as a sparse one."""
    try:
        return int(tensor.untyped_storage().data_ptr())
    except Exception:  # noqa: BLE001 -- whatever the type of tensor raises
        return id(tensor)


def rows(torch: Any, value: Any, most: int) -> str:
    """Return short digests of the items of a batch, in base64: by the first tensor that has more than one."""
    for tensor in tensors_in(torch, value, objects=True):
        if tensor.dim() and 1 < tensor.shape[0] <= most and tensor.numel() * tensor.element_size() <= 1 << 26:
            try:
                items = _of_items(torch, dense(torch, tensor))
            except Unreadable:
                continue
            return base64.b64encode(b"".join(item[:SHORT] for item in items)).decode()
    return ""


def _of_items(torch: Any, whole: Any) -> list[bytes]:
    """Return the digests of the items of a dense tensor. Raises `Unreadable`."""
    if whole.device.type != "cpu":
        try:
            return device_hash.of_items(torch, whole)
        except Exception as error:
            raise Unreadable(f"{type(whole).__name__} on {whole.device}") from error
    data = memoryview(raw(whole)).cast("B")
    size = len(data) // whole.shape[0]
    return [hashlib.sha256(data[at * size : (at + 1) * size]).digest() for at in range(whole.shape[0])]


def of_generators(torch: Any) -> dict[str, str]:
    """Return the digests of the states of all random generators of this process."""
    found = {"python": hashlib.sha256(repr(random.getstate()).encode()).hexdigest()[:32]}
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        name, keys, at, has, cached = numpy.get_state(legacy=True)
        found["numpy"] = hashlib.sha256(f"{name}{at}{has}{cached!r}".encode() + keys.tobytes()).hexdigest()[
            :32
        ]
    found["torch"] = of_tensor(torch, torch.get_rng_state()).hex()[:32]
    if torch.cuda.is_initialized():
        for number, state in enumerate(torch.cuda.get_rng_state_all()):
            found[f"cuda:{number}"] = of_tensor(torch, state).hex()[:32]
    return found


def gpus(torch: Any) -> dict[str, str]:
    """Return the GPUs that are visible, each with its multiprocessors, the driver (or nothing), and cuDNN."""
    found = [torch.cuda.get_device_properties(number) for number in range(torch.cuda.device_count())]
    names = ", ".join(f"{each.name} ({each.multi_processor_count} multiprocessors)" for each in found)
    try:
        driver = Path("/sys/module/nvidia/version").read_text("utf-8").strip()
    except OSError:  # WSL has no such module
        driver = ""
    return {"GPU": names[:300], "driver": driver[:100], "cuDNN": str(torch.backends.cudnn.version())}
