"""Read a wheel's archive, with one kind of error and bounded chunks."""

from __future__ import annotations

import csv
import errno
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from isal import igzip_lib, isal_zlib

from ..errors import BuildError
from ..host.home import storage_errors
from ..host.zip_directory import open_zip
from .store import DAMAGED

CHUNK = 1 << 20
MOST_BYTES = 64 << 30
"""Of all members of an archive, unpacked; the largest wheels have 4 GB."""
MOST_MEMBERS = 1_000_000
"""Of an archive; the largest wheels have 30,000."""

_InflateError: type[Exception] = igzip_lib.IsalError  # type: ignore[assignment]  # its stub says an instance
_HEADER = struct.Struct("<4s2xHH4xIIIHH")
_UTF8, _DESCRIPTOR, _ENCRYPTED = 0x800, 8, 0x2061  # with patched data and masked headers
_UNICODE_PATH = 0x7075
"""A field with another name of a member, which Python takes from 3.12 on."""
_DESCRIPTORS = (12, 16, 20, 24)
"""Bytes of one: with and without a signature, and with sizes of 8 bytes."""
_END = struct.Struct("<4s4x2H8xH")
_LOCATOR = struct.Struct("<4s4xQ4x")
_END_64 = 56
BAD_ARCHIVE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, csv.Error, EOFError, ValueError, OverflowError),
    *(RuntimeError, SyntaxError, RecursionError),
)
"""What zipfile and the readers of what is in it raise on bytes that make no sense."""


@contextmanager
def opened(file: Path, name: str) -> Iterator[zipfile.ZipFile]:
    """Open the wheel of a package. Raises `BuildError` if it is not a valid zip archive, `StorageError`."""
    with storage_errors(file):
        plain = file.open("rb")
    try:
        with plain, open_zip(plain) as archive:
            hold_layout(plain, archive)
            yield archive
    except (*BAD_ARCHIVE, OSError) as error:
        # zipfile seeks to where a damaged directory sends it, even to before the start.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        reason = str(error) or type(error).__name__
        raise BuildError(f"{name}: its wheel cannot be read: {reason}", hint=DAMAGED) from None


def hold_layout(file: IO[bytes], archive: zipfile.ZipFile) -> None:
    """Raise `zipfile.BadZipFile` for an archive that readers could interpret differently.

    Every member stands in it once, by one name in its directory and at its data, and no data is that of two
    members: a few megabytes could else unpack to terabytes (see "A better zip bomb", D. Fifield, 2019).
    There is nothing before, between and after, as uv wants it (https://github.com/astral-sh/uv/pull/15136).
    """
    members = sorted(archive.infolist(), key=lambda info: info.header_offset)
    if len(members) > MOST_MEMBERS:
        raise zipfile.BadZipFile(f"it has more than {MOST_MEMBERS} members")
    if sum(info.file_size for info in members) > MOST_BYTES:
        raise zipfile.BadZipFile(f"it unpacks to more than {MOST_BYTES} bytes")
    counts = Counter(info.filename.rstrip("/") for info in members)
    if len(counts) != len(members):
        raise zipfile.BadZipFile(f"it has {counts.most_common(1)[0][0]!r} more than once")
    _hold_end(file, archive)
    starts = [info.header_offset for info in members] + [archive.start_dir]
    if starts[0] != 0:
        raise zipfile.BadZipFile(f"it has {starts[0]} bytes before its first member")
    for info, end in zip(members, starts[1:], strict=True):
        left = end - _hold_member(file, info)
        if left < 0:
            raise zipfile.BadZipFile(f"the data of {info.filename!r} overlaps that of another member")
        if left not in (_DESCRIPTORS if info.flag_bits & _DESCRIPTOR else (0,)):
            raise zipfile.BadZipFile(f"{left} bytes behind {info.filename!r} are of no member")


def _hold_member(file: IO[bytes], info: zipfile.ZipInfo) -> int:
    """Compare the header at a member's data with its entry in the directory; return where the data ends."""
    file.seek(info.header_offset)
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size or header[:4] != b"PK\x03\x04":
        raise zipfile.BadZipFile(f"the header of {info.filename!r} is damaged")
    name_size: int
    extra_size: int
    _, flags, method, crc, size, whole, name_size, extra_size = _HEADER.unpack(header)
    same = file.read(name_size) == _encoded(info)
    extras = (info.extra, file.read(extra_size))
    if not same or any(_UNICODE_PATH in _extra_fields(extra) for extra in extras):
        raise zipfile.BadZipFile(f"{info.filename!r} has another name beside its data")
    if method != info.compress_type:
        raise zipfile.BadZipFile(f"{info.filename!r} is compressed in two ways")
    if info.flag_bits & _ENCRYPTED or (flags ^ info.flag_bits) & (_ENCRYPTED | _DESCRIPTOR):
        raise zipfile.BadZipFile(f"{info.filename!r} is encrypted, or not in each of its headers")
    said = {(crc, info.CRC), (size, info.compress_size), (whole, info.file_size)}
    if not flags & _DESCRIPTOR and any(one not in (other, 0xFFFFFFFF) for one, other in said):
        raise zipfile.BadZipFile(f"{info.filename!r} has another size or checksum beside its data")
    return info.header_offset + len(header) + name_size + extra_size + info.compress_size


def _hold_end(file: IO[bytes], archive: zipfile.ZipFile) -> None:
    """Validate what follows the directory: optional ZIP64 records, the end record, and a comment."""
    members = archive.infolist()
    entries = sum(46 + len(_encoded(info)) + len(info.extra) + len(info.comment) for info in members)
    file.seek(archive.start_dir + entries)
    left = file.read(_END_64 + _LOCATOR.size + _END.size + (1 << 16))
    if left[:4] == b"PK\x06\x06":
        signature, offset = _LOCATOR.unpack_from(left, _END_64)
        if (signature, offset) != (b"PK\x06\x07", archive.start_dir + entries):
            raise zipfile.BadZipFile("its directory is in two places")
        left = left[_END_64 + _LOCATOR.size :]
    signature, on_disk, count, size = _END.unpack_from(left)
    if signature != b"PK\x05\x06" or len(left) != _END.size + size or b"PK\x05\x06" in left[4:]:
        raise zipfile.BadZipFile("it has something behind its directory")
    if {on_disk, count} - {len(members), 0xFFFF}:
        raise zipfile.BadZipFile(f"it has {len(members)} members, and says {count}")


def _extra_fields(extra: bytes) -> Iterator[int]:
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<HH", extra)
        yield kind
        extra = extra[4 + size :]


def _encoded(info: zipfile.ZipInfo) -> bytes:
    return info.orig_filename.encode("utf-8" if info.flag_bits & _UTF8 else "cp437")


def chunks(file: IO[bytes], info: zipfile.ZipInfo) -> Iterator[bytes]:
    """Inflate a member of the archive that ``file`` reads, a megabyte of it at a time.

    Raises `BuildError` when the archive is damaged, which the member's CRC tells.
    """
    if info.compress_type not in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
        raise BuildError(f"{info.filename}: the wheel compresses it with an unknown method")
    file.seek(info.header_offset)
    header = file.read(30)
    if len(header) < 30 or header[:4] != b"PK\x03\x04":
        raise BuildError(f"{info.filename}: its header in the wheel is damaged", hint=DAMAGED)
    *_, name_size, extra_size = _HEADER.unpack(header)
    file.seek(name_size + extra_size, 1)
    size, checksum = 0, 0
    try:
        for data in _inflated(file, info):
            size += len(data)
            if size > info.file_size:
                break  # it says that it is smaller: what comes may be without end
            checksum = isal_zlib.crc32(data, checksum)
            yield data
    except _InflateError:
        size = -1
    if size != info.file_size or checksum != info.CRC:
        raise BuildError(f"{info.filename}: its bytes in the wheel are damaged", hint=DAMAGED)


def _inflated(file: IO[bytes], info: zipfile.ZipInfo) -> Iterator[bytes]:
    left = info.compress_size
    inflater = isal_zlib.decompressobj(-15) if info.compress_type == zipfile.ZIP_DEFLATED else None
    while left and (data := file.read(min(left, CHUNK))):
        left -= len(data)
        if inflater is None:
            yield data
            continue
        # A megabyte of zeros compressed is a gigabyte, so what comes out is bounded too.
        while data and not inflater.eof:
            yield inflater.decompress(data, 4 * CHUNK)
            data = inflater.unconsumed_tail
