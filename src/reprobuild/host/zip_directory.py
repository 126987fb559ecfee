"""Limit of a zip archive's directory, which `zipfile` reads whole and makes an object of each entry of."""

from __future__ import annotations

import io
import struct
import zipfile
from typing import IO

MOST_BYTES = 64 << 20
"""Of a directory: a million entries with short names take a gigabyte. The largest wheels have 30,000."""

_END = struct.Struct("<4s8xL4xH")
_LOCATOR = struct.Struct("<4s16x")
_END_64 = struct.Struct("<4s36xQ8x")
_MOST_COMMENT = 1 << 16


def open_zip(file: IO[bytes]) -> zipfile.ZipFile:
    """Open an untrusted archive. Raises as `zipfile.ZipFile`, also for a directory above `MOST_BYTES`."""
    hold_directory(file)
    return zipfile.ZipFile(file)


def hold_directory(file: IO[bytes]) -> None:
    """Raise `zipfile.BadZipFile` for an archive whose directory has more than `MOST_BYTES`.

    Looks where `zipfile` does, and leaves to it what is not an archive.
    """
    before = _END_64.size + _LOCATOR.size
    tail = _last(file, before + _END.size)
    end = len(tail) - _END.size
    if tail[end : end + 4] != b"PK\x05\x06" or tail[-2:] != bytes(2):  # a comment follows
        tail = _last(file, before + _END.size + _MOST_COMMENT)
        end = tail.rfind(b"PK\x05\x06")
    file.seek(0)
    if end < 0 or end + _END.size > len(tail):
        return
    _, directory, _ = _END.unpack_from(tail, end)
    if end >= before and tail[end - _LOCATOR.size :].startswith(b"PK\x06\x07"):
        signature, of_64 = _END_64.unpack_from(tail, end - before)
        directory = of_64 if signature == b"PK\x06\x06" else directory
    if directory > MOST_BYTES:
        raise zipfile.BadZipFile(f"its directory has more than {MOST_BYTES:,} bytes")


def _last(file: IO[bytes], size: int) -> bytes:
    file.seek(max(file.seek(0, io.SEEK_END) - size, 0))
    found = bytearray()
    while len(found) < size and (piece := file.read(size - len(found))):
        found += piece
    return bytes(found)
