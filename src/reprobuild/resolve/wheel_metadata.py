"""The metadata of a wheel on an index, without downloading the wheel.

The file beside it (PEP 658) is read where the index has one, else the end of the wheel by range requests: a
zip keeps its list of files at the end, and wheels are asked to keep their metadata there too (PEP 427).
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import requests
from packaging.metadata import parse_email
from packaging.requirements import InvalidRequirement, Requirement

from ..errors import ResolveError
from ..fetch.http_errors import reason_of
from ..host.home import open_regular
from ..host.zip_directory import open_zip
from ..net.local_files import file_path

if TYPE_CHECKING:
    from pypi_simple import DistributionPackage

_AHEAD = 256 * 1024
"""Bytes of a range request at least: the list of files of a torch wheel is about 1 MB, its metadata 30 KB."""

_MOST = 64 << 20
"""Bytes of one wheel that are read at most; torch's list of files is about 1 MB."""

LARGEST = 16 << 20
"""Bytes, inflated, of a member that is read."""

UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, struct.error)
"""What zipfile raises, by experience, for a damaged zip."""


def requirements(package: DistributionPackage, session: requests.Session) -> list[Requirement]:
    """Return what a wheel requires. Raises `ResolveError` that names the file when it cannot be read."""
    try:
        text = None if package.url.startswith("file:") else _beside(package, session)
        text = text or _inside(package.url, session)
    except (*UNREADABLE, requests.RequestException, ValueError, OSError) as error:
        raise ResolveError(
            f"the metadata of {package.filename} cannot be read from its index: {reason_of(error)}",
            hint="try again; an index must serve metadata files (PEP 658) or support range requests",
        ) from None
    return required(text)


def required(metadata: str) -> list[Requirement]:
    """Return what the metadata of a wheel requires."""
    raw, _ = parse_email(metadata)
    found = []
    for line in raw.get("requires_dist", []):
        try:
            found.append(Requirement(line))
        except InvalidRequirement:
            # Some old wheels have lines that were never valid; none of those is about CUDA.
            continue
    return found


def ranged_file(url: str, session: requests.Session) -> io.RawIOBase:
    """Return a file on a server of which only the parts that are read are fetched; else ValueError."""
    return _RangedFile(url, session)


def _beside(package: DistributionPackage, session: requests.Session) -> str | None:
    from pypi_simple import DigestMismatchError, NoMetadataError, PyPISimple  # noqa: PLC0415 -- see `index_page`

    if package.has_metadata is False:
        return None
    try:
        # The client's endpoint is not used for this call, only its session.
        client = PyPISimple(package.url, session=session)
        return client.get_package_metadata(package, verify=bool(package.metadata_digests))
    except (NoMetadataError, DigestMismatchError):
        # With a wrong hash (https://github.com/pytorch/pytorch/issues/153469) the wheel's own counts.
        return None
    except requests.HTTPError as error:
        # Stores of objects answer 403 for what they do not have.
        if error.response is not None and 400 <= error.response.status_code < 500:
            return None
        raise


@contextmanager
def open_wheel(url: str, session: requests.Session) -> Iterator[zipfile.ZipFile]:
    """Open a wheel on this machine, or on a server that serves the parts of it that are read."""
    if url.startswith("file:"):
        with open_regular(file_path(url)) as file, open_zip(file) as wheel:
            yield wheel
    else:  # of which no more is read than `_MOST`, and `zipfile` reads and seeks only
        with zipfile.ZipFile(_RangedFile(url, session)) as wheel:
            yield wheel


def _inside(url: str, session: requests.Session) -> str:
    with open_wheel(url, session) as wheel:
        names = [
            name for name in wheel.namelist() if name.endswith(".dist-info/METADATA") and name.count("/") == 1
        ]
        if len(names) != 1:
            raise ValueError(f"it has {len(names)} metadata files")
        return read_member(wheel, names[0]).decode("utf-8")


def read_member(wheel: zipfile.ZipFile, name: str) -> bytes:
    """Read a small member of an unverified wheel; ValueError if it is too large."""
    if wheel.getinfo(name).file_size > LARGEST:
        raise ValueError(f"{name} is larger than {LARGEST >> 20} MiB")
    return wheel.read(name)  # inflates no more than the size that was just looked at


class _RangedFile(io.RawIOBase):
    """A file on a server, read piece by piece; every piece stays in memory. ValueError where that fails."""

    def __init__(self, url: str, session: requests.Session) -> None:
        self._url, self._session = url, session
        self._pieces: list[tuple[int, bytes]] = []
        self._position, self._fetched = 0, 0
        with session.head(url, allow_redirects=True) as answer:
            answer.raise_for_status()
            if "Content-Length" not in answer.headers:
                raise ValueError("the server does not report its length")
            self._size = int(answer.headers["Content-Length"])

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise OSError("a position before the start of the file")
        self._position = base + offset
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        # typeshed names a type for the buffer that only newer Pythons have.
        end = min(self._position + len(buffer), self._size)
        if end <= self._position:
            return 0
        data = self._get(self._position, end)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def _get(self, start: int, end: int) -> bytes:
        for first, piece in self._pieces:
            if first <= start and end <= first + len(piece):
                return piece[start - first : end - first]
        # A small read is of the end of the list, or of an entry whose neighbours are read next.
        first, last = start, min(max(end, start + _AHEAD), self._size)
        first = max(0, min(first, last - _AHEAD))
        self._fetched += last - first
        if self._fetched > _MOST:
            raise ValueError(f"more than {_MOST >> 20} MiB of the wheel would have to be read")
        header = {"Range": f"bytes={first}-{last - 1}", "Accept-Encoding": "identity"}
        with self._session.get(self._url, headers=header, stream=True) as answer:
            answer.raise_for_status()
            if answer.status_code != 206:
                raise ValueError("the server does not support range requests")
            piece = _no_more_than(last - first, answer)
        if len(piece) != last - first:
            raise ValueError("the server's answer to a range request has the wrong length")
        self._pieces.append((first, piece))
        return piece[start - first : end - first]


def _no_more_than(size: int, answer: requests.Response) -> bytes:
    """Return the body, cut a little after ``size`` bytes: the server may send without end."""
    data = bytearray()
    for chunk in answer.iter_content(64 * 1024):
        data += chunk
        if len(data) > size:
            break
    return bytes(data)
