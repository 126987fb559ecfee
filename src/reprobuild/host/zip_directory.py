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
_LOCAL = struct.Struct("<26sHH")
"""The head of a member, with the lengths of its name and of its other fields behind it."""
_MOST_BETWEEN = 24
"""Bytes of the sizes and the checksum that may stand behind a member."""
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


def hold_whole(archive: zipfile.ZipFile) -> None:
    """Raise `zipfile.BadZipFile` for an archive with bytes before, between or behind its members."""
    file = archive.fp
    if file is None:
        raise zipfile.BadZipFile("it is closed")
    end = 0
    for member in sorted(archive.infolist(), key=lambda each: each.header_offset):
        if not end <= member.header_offset <= end + (_MOST_BETWEEN if end else 0):
            raise zipfile.BadZipFile("bytes are of no member")
        file.seek(member.header_offset)
        _, names, extra = _LOCAL.unpack(file.read(_LOCAL.size))
        end = member.header_offset + _LOCAL.size + names + extra + member.compress_size
    if not end <= archive.start_dir <= end + _MOST_BETWEEN:
        raise zipfile.BadZipFile("bytes are of no member")
    file.seek(archive.start_dir)
    tail = file.read()
    at = len(tail) - len(archive.comment) - _END.size
    if at < 0 or tail[at : at + 4] != b"PK\x05\x06":
        raise zipfile.BadZipFile("bytes stand behind it")
    (directory,) = struct.unpack_from("<L", tail, at + 12)
    if directory not in (at, 0xFFFFFFFF) and at - directory != _END_64.size + _LOCATOR.size:
        raise zipfile.BadZipFile("bytes are of no member")


def _last(file: IO[bytes], size: int) -> bytes:
    file.seek(max(file.seek(0, io.SEEK_END) - size, 0))
    found = bytearray()
    while len(found) < size and (piece := file.read(size - len(found))):
        found += piece
    return bytes(found)
