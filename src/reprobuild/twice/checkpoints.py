"""The tensors of a checkpoint by name, each with its digest; nothing in it is executed or unpickled.

``.safetensors`` (its own format), ``.npy``, ``.npz``, ``.keras`` and ``.pt`` of torch 1.6 and later (a zip
archive with one member a storage). The names in a ``.pt`` are read from the pickle's opcodes, which are only
looked at. A file that is not what its name says is compared by its bytes alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickletools
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ..host.zip_directory import hold_whole, open_zip
from .evidence_limits import load_values
from .sparse import sparse_digest

KINDS = (".pt", ".pth", ".ckpt", ".bin", ".safetensors", ".npy", ".npz", ".keras")
MOST_HEADER = 64 << 20
MOST_INFLATED = 64 << 30
_CHUNK = 1 << 20
_LONGEST = 300
_REST = "everything but the tensors"
_NOTES = ("version", "byteorder", ".format_version", ".storage_alignment", ".data/serialization_id")
"""torch's own notes in an archive: of its format, not of what is saved."""


General = Callable[[str], str]
"""Replace inherently varying values, such as times, by their kind."""


def tensors(path: Path, general: General) -> Mapping[str, str]:
    """Return the digests of the tensors in a file by name; empty if it is not a readable checkpoint."""
    if path.suffix not in KINDS:
        return {}
    try:
        with path.open("rb") as file:
            if path.suffix == ".safetensors":
                return _safetensors(file, general)
            if path.suffix == ".npy":
                size = os.fstat(file.fileno()).st_size
                return {"array": sparse_digest(file.fileno(), 0, size)[:32]}
            with open_zip(file) as archive:
                if path.suffix == ".keras":
                    return _keras(archive, general)
                return _zip(archive, general if path.suffix != ".npz" else None)
    except (
        *(
            OSError,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            EOFError,
            struct.error,
            RecursionError,
            NotImplementedError,
        ),
        *(zipfile.BadZipFile, zlib.error, RuntimeError, IndexError, StopIteration, OverflowError),
    ):
        return {}


def _safetensors(file: IO[bytes], general: General) -> dict[str, str]:
    (length,) = struct.unpack("<Q", file.read(8))
    if length > MOST_HEADER:
        raise ValueError("too long")
    text = file.read(length)
    header = load_values(text)
    notes = header.pop("__metadata__", {})
    told = {key: general(f"{value}") for key, value in notes.items()}
    rest = [sorted(told.items()), header]
    found = {_REST: hashlib.sha256(json.dumps(rest).encode()).hexdigest()[:32]}
    read, size = 0, os.fstat(file.fileno()).st_size - 8 - length
    for name, entry in sorted(header.items(), key=lambda each: each[1]["data_offsets"]):
        start, end = entry["data_offsets"]
        if not read == start <= end <= size:  # if two share bytes, others are in none
            raise ValueError("no offsets")
        read = end
        kind = f"{entry['dtype']}{entry['shape']}".encode()
        _add(found, name, sparse_digest(file.fileno(), 8 + length + start, end - start, kind)[:32])
    if read != size:
        raise ValueError("bytes of no tensor")
    return found


def _members(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Return what an archive of a readable size has. Raises `ValueError`."""
    members = archive.infolist()
    if sum(member.file_size for member in members) > MOST_INFLATED:
        raise ValueError("too large")
    hold_whole(archive)
    return members


def _keras(archive: zipfile.ZipFile, general: General) -> dict[str, str]:
    """Read a model of Keras, whose texts have the date and the addresses of objects."""
    found: dict[str, str] = {"comment": hashlib.sha256(archive.comment).hexdigest()[:32]}
    for member in _members(archive):
        if member.filename.endswith(".json") and member.file_size <= MOST_HEADER:
            lines = [general(line) for line in archive.read(member).decode().split("\n")]
            _add(found, member.filename, hashlib.sha256(json.dumps(lines).encode()).hexdigest()[:32])
        else:
            with archive.open(member) as file:
                _add(found, member.filename, _digest(file, member.file_size))
    return found


def _zip(archive: zipfile.ZipFile, general: General | None) -> dict[str, str]:
    """Read an archive, of a pickle's tensors where ``general`` is given."""
    members = _members(archive)
    names = dict[str, str]()
    if general is not None:
        pickles = [member for member in members if _inside(member) == "data.pkl"]
        if not pickles or any(member.file_size > MOST_HEADER for member in pickles):
            raise ValueError("no index, or too large")
        names = storage_names(archive.read(pickles[0]))
    found: dict[str, str] = {}
    if archive.comment:
        found["comment"] = hashlib.sha256(archive.comment).hexdigest()[:32]
    for member in members:
        inside = _inside(member)
        folder, _, last = inside.rpartition("/")
        if general is None:
            name = member.filename.removesuffix(".npy")
        elif inside == "data.pkl":
            _add(found, _REST, pickle_digest(archive.read(member), general))
            continue
        elif inside in _NOTES:
            continue
        elif folder == "data":
            name = names.get(last) or f"storage {last}"
        else:
            name = inside  # of TorchScript: its code and its constants
        with archive.open(member) as file:
            _add(found, name, _digest(file, member.file_size))
    return found


def _inside(member: zipfile.ZipInfo) -> str:
    """Return a member's path in the one folder that an archive of torch has."""
    return member.filename.partition("/")[2] or member.filename


def _add(found: dict[str, str], name: str, digest: str) -> None:
    """Add a digest by a name of its own: of two with one name neither may hide the other."""
    name = name[:_LONGEST]
    found[f"{name} ({len(found)})" if name in found else name] = digest


@dataclass(frozen=True, eq=False, slots=True)
class _Storage:
    key: str


def storage_names(pickle: bytes) -> dict[str, str]:
    """Return key of a storage → the path of keys at which a pickle has it first: ``model.0.weight``.

    The opcodes are followed on a stack of plain values; nothing is imported, called or built.
    """
    names: dict[str, str] = {}
    seen = set[int]()
    todo: list[tuple[str, Any]] = [("", _outline(pickle))]
    while todo:
        path, value = todo.pop()
        if isinstance(value, _Storage):
            names.setdefault(value.key, path)
            continue
        if not isinstance(value, (dict, list)) or id(value) in seen:
            continue
        seen.add(id(value))
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        # The last is taken first.
        todo += [(f"{path}.{key}".strip(".")[:_LONGEST], each) for key, each in reversed([*pairs])]
    return names


def pickle_digest(pickle: bytes, general: General) -> str:
    """Return a digest of what a pickle holds but for the tensors, without times, as of a text.

    Raises `ValueError`.
    """
    found = hashlib.sha256()
    for number, (opcode, argument, _) in enumerate(pickletools.genops(pickle)):
        if number > _MOST_OPCODES:
            raise ValueError("too long")
        if opcode.name == "FRAME":  # how long the texts are
            continue
        shown = f"{argument!r}"
        if isinstance(argument, str):
            shown = repr([general(line) for line in argument.splitlines()])
        elif isinstance(argument, (float, int)):
            shown = general(shown)
        found.update(f"{opcode.name} {shown}\n".encode("utf-8", "surrogatepass"))
    return found.hexdigest()[:32]


_PUTS = ("MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT")
_CALLS = ("REDUCE", "NEWOBJ", "NEWOBJ_EX", "OBJ", "INST")
_GETS = ("GET", "BINGET", "LONG_BINGET")


def _outline(pickle: bytes) -> Any:
    """Return what a pickle holds, as dictionaries, lists, texts, numbers and storages; None for all else.

    Raises `ValueError` or `IndexError` for one that makes no sense.
    """
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    copied = 0
    for number, (opcode, argument, _) in enumerate(pickletools.genops(pickle)):
        if number + copied > _MOST_OPCODES:
            raise ValueError("too long")
        name = opcode.name
        if name == "STOP":
            break
        if name in _PUTS:
            memo[len(memo) if argument is None else int(argument)] = stack[-1]
            continue
        if name in _GETS:
            stack.append(memo[int(str(argument))])
            continue
        if name == "DUP":
            stack.append(stack[-1])
            continue
        taken = _taken(opcode, stack)
        # The arguments of an object are listed anew for it, and one list may be those of many.
        copied += sum(len(each) for each in taken if isinstance(each, list)) if name in _CALLS else 0
        if opcode.stack_after:
            stack.append(_made(name, argument, taken))
    return stack[-1]


def _taken(opcode: pickletools.OpcodeInfo, stack: list[Any]) -> list[Any]:
    """Take from the stack what an opcode takes, without the mark."""
    taken: list[Any] = []
    for kind in reversed(opcode.stack_before):
        if kind is pickletools.stackslice:
            while stack[-1] is not _MARK:
                taken.append(stack.pop())
        elif kind is not pickletools.markobject:
            taken.append(stack.pop())
        elif stack.pop() is not _MARK:
            raise ValueError("a mark is missing")
    taken.reverse()
    return taken


def _made(name: str, argument: Any, taken: list[Any]) -> Any:
    """Return what an opcode leaves on the stack."""
    made: Any = argument if isinstance(argument, (str, int)) else None
    if name == "MARK":
        made = _MARK
    elif name in ("EMPTY_DICT", "DICT"):
        made = dict(_pairs(taken))
    elif name in ("SETITEM", "SETITEMS"):
        made = taken[0]
        if isinstance(made, dict):
            made.update(_pairs(taken[1:]))
    elif name in ("APPEND", "APPENDS", "ADDITEMS"):
        made = taken[0]
        if isinstance(made, list):
            made.extend(taken[1:])
    elif name == "BINPERSID":
        # ("storage", its type, the key, the device, the number of elements)
        words = taken[0] if isinstance(taken[0], list) else []
        made = _Storage(str(words[2])) if len(words) > 2 and words[0] == "storage" else None
    elif name in _CALLS:
        made = _called(taken)
    elif name == "BUILD":
        its, state = taken
        made = [its, state] if isinstance(its, list) and its else its or state
    elif name.startswith(("TUPLE", "EMPTY_")) or name in ("LIST", "FROZENSET"):
        made = taken
    return made


def _called(taken: list[Any]) -> Any:
    """Return the plain form of an object: a storage for a tensor, a dictionary for an ordered one."""
    arguments = [each for value in taken[1:] for each in (value if isinstance(value, list) else [value])]
    storage = next((each for each in arguments if isinstance(each, _Storage)), None)
    if storage is not None:
        return storage
    return arguments or {}


def _pairs(values: list[Any]) -> Iterator[tuple[str, Any]]:
    for at in range(0, len(values) - 1, 2):
        key = values[at]
        # Not the number itself: a dictionary of numbers with one hash takes the square of their count.
        yield f"{key}" if isinstance(key, (str, int)) else f"key {at // 2}", values[at + 1]


_MARK = object()
_MOST_OPCODES = 20_000_000


def _digest(file: IO[bytes], size: int) -> str:
    found = hashlib.sha256()
    while size > 0 and (chunk := file.read(min(_CHUNK, size))):
        found.update(chunk)
        size -= len(chunk)
    return found.hexdigest()[:32]
