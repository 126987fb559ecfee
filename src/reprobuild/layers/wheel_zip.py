"""Reading a wheel's archive: opened with one kind of error, members inflated in chunks of bounded size."""

from __future__ import annotations

import csv
import errno
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from isal import igzip_lib, isal_zlib

from ..errors import BuildError

CHUNK = 1 << 20

_InflateError: type[Exception] = igzip_lib.IsalError  # type: ignore[assignment]  # its stub says an instance
_HEADER = struct.Struct("<4s22xHH")
_BAD_ARCHIVE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, csv.Error, EOFError, ValueError, OverflowError),
    *(RuntimeError, SyntaxError, RecursionError),
)
"""What zipfile and the readers of what is in it raise on bytes that make no sense."""
_DAMAGED = "`reprobuild clean --all` empties the store; the next run fetches the wheel again"


@contextmanager
def opened(file: Path, name: str) -> Iterator[zipfile.ZipFile]:
    """Open the wheel of a package. Raises `BuildError` when it is no zip archive, or a damaged one."""
    try:
        with zipfile.ZipFile(file) as archive:
            yield archive
    except (*_BAD_ARCHIVE, OSError) as error:
        # zipfile seeks to where a damaged directory sends it, even to before the start.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        reason = str(error) or type(error).__name__
        raise BuildError(f"{name}: its wheel cannot be read: {reason}", hint=_DAMAGED) from None


def chunks(file: IO[bytes], info: zipfile.ZipInfo) -> Iterator[bytes]:
    """Inflate a member of the archive that ``file`` reads, a megabyte of it at a time.

    Raises `BuildError` when the archive is damaged, which the member's CRC tells.
    """
    if info.compress_type not in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
        raise BuildError(f"{info.filename}: the wheel compresses it in a way that is not known")
    file.seek(info.header_offset)
    header = file.read(30)
    if len(header) < 30 or header[:4] != b"PK\x03\x04":
        raise BuildError(f"{info.filename}: its header in the wheel is damaged", hint=_DAMAGED)
    _, name_size, extra_size = _HEADER.unpack(header)
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
        raise BuildError(f"{info.filename}: its bytes in the wheel are damaged", hint=_DAMAGED)


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
