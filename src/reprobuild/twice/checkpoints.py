"""The tensors of a checkpoint by name, each with its digest; nothing in it is executed or unpickled.

``.safetensors`` (its own format), ``.npy``, ``.npz`` and ``.pt`` of torch 1.6 and later (a zip archive with
one member a storage). The names in a ``.pt`` are read from the pickle's opcodes, which are only looked at. A
file that is not what its name says is compared by its bytes alone.
"""

from __future__ import annotations

import hashlib
import json
import pickletools
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO

KINDS = (".pt", ".pth", ".ckpt", ".bin", ".safetensors", ".npy", ".npz")
MOST_HEADER = 64 << 20
MOST_INFLATED = 64 << 30
_CHUNK = 1 << 20


def tensors(path: Path) -> Mapping[str, str]:
    """Return name → digest of the tensors in a file; empty where it is no checkpoint that can be read."""
    if path.suffix not in KINDS:
        return {}
    try:
        with path.open("rb") as file:
            if path.suffix == ".safetensors":
                return _safetensors(file)
            if path.suffix == ".npy":
                return {"array": _digest(file, MOST_INFLATED)}
            with zipfile.ZipFile(file) as archive:
                return _zip(archive, pickled=path.suffix != ".npz")
    except (
        *(
            OSError,
            ValueError,
            KeyError,
            TypeError,
            EOFError,
            struct.error,
            RecursionError,
            NotImplementedError,
        ),
        *(zipfile.BadZipFile, zlib.error, RuntimeError),
    ):
        return {}


def _safetensors(file: IO[bytes]) -> dict[str, str]:
    (length,) = struct.unpack("<Q", file.read(8))
    if length > MOST_HEADER:
        raise ValueError("too long")
    header = json.loads(file.read(length))
    found = {}
    for name, entry in sorted(header.items()):
        if name == "__metadata__":
            continue
        start, end = entry["data_offsets"]
        if not 0 <= start <= end:
            raise ValueError("no offsets")
        file.seek(8 + length + start)
        kind = f"{entry['dtype']}{entry['shape']}".encode()
        found[str(name)[:300]] = _digest(file, end - start, kind)
    return found


def _zip(archive: zipfile.ZipFile, *, pickled: bool) -> dict[str, str]:
    members = archive.infolist()
    if sum(member.file_size for member in members) > MOST_INFLATED:
        raise ValueError("too large")
    names: dict[str, str] = {}
    if pickled:
        index = next(member for member in members if member.filename.rpartition("/")[2] == "data.pkl")
        if index.file_size > MOST_HEADER:
            raise ValueError("too large")
        names = storage_names(archive.read(index))
    found = {}
    for member in members:
        folder, _, last = member.filename.rpartition("/")
        if pickled and not folder.endswith("/data") and last != "data.pkl":
            continue
        name = (
            names.get(last, last.removesuffix(".npy")) if last != "data.pkl" else "everything but the tensors"
        )
        with archive.open(member) as file:
            found[name[:300]] = _digest(file, member.file_size)
    return found


def storage_names(pickle: bytes) -> dict[str, str]:
    """Return key of a storage → the path of dictionary keys at which a pickle names it, for a reader.

    Only the text next before a tensor is known for sure, so that is the name.
    """
    names: dict[str, str] = {}
    memo: dict[int, str] = {}
    last: list[str] = []
    candidate = ""
    for number, (opcode, argument, _) in enumerate(pickletools.genops(pickle)):
        if number > 50_000_000:
            raise ValueError("too long")
        name = opcode.name
        if name in ("BINUNICODE", "SHORT_BINUNICODE", "UNICODE", "BINUNICODE8"):
            last.append(str(argument))
        elif name in ("BINPUT", "LONG_BINPUT") and isinstance(argument, int) and last:
            memo[argument] = last[-1]
        elif name in ("BINGET", "LONG_BINGET") and isinstance(argument, int):
            last.append(memo.get(argument, ""))
        elif name == "GLOBAL":
            if "_rebuild_" in str(argument):
                candidate = last[-1] if last else ""
            last.append("")
        elif name == "BINPERSID":
            # ('storage', type, key, location, size): the key is the second text from the end.
            texts = [text for text in last[-6:] if text]
            if len(texts) >= 2:
                names.setdefault(texts[-2], candidate)
        del last[:-16]
    return names


def _digest(file: IO[bytes], size: int, start: bytes = b"") -> str:
    found = hashlib.sha256(start)
    while size > 0 and (chunk := file.read(min(_CHUNK, size))):
        found.update(chunk)
        size -= len(chunk)
    return found.hexdigest()[:32]
