"""Write a layer: a tar that depends on its entries alone, hashed and compressed as it is written.

Every entry has one time stamp, owner names are left out, and PAX headers stand only where a name or a size
needs one. The bytes are read once: the same chunk feeds the file's hash, the tar's hash and the compressor.
"""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, Protocol

import zstandard

from ..host.console import Console
from ..host.home import write_all
from ..host.outputs import one_writer
from .blobs import open_blob
from .tar_header import header

FORMAT = f"3/zstd-{zstandard.__version__}"
"""Part of every layer's key: raise the number when the bytes of a layer change for the same input."""

MTIME = 315532800
"""1980-01-01 (UTC), the earliest time that a zip file can hold. Not the lock's epoch: with that, a newer
version of one small package would change every layer."""

MEDIA_TYPE = "application/vnd.oci.image.layer.v1.tar+zstd"

_LEVEL = 1
_FLUSH = 1 << 18

Kind = Literal["file", "dir", "link", "other"]


@dataclass(frozen=True, slots=True)
class Record:
    """One path of a layer, as the manifest of files and the tree digest see it."""

    path: str
    """Without a leading slash."""
    kind: Kind
    mode: int
    content: str
    """A file's sha256, a link's target, ``-`` for a folder."""
    owner: str = "0:0"
    """Numbers of user and group."""
    attributes: str = ""
    """Extended attributes, a line each: the name, ``=`` and the value in hexadecimal digits."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A finished layer."""

    diff_id: str
    """``sha256:…`` of the tar; does not depend on the compressor."""
    digest: str
    """``sha256:…`` of the compressed blob."""
    size: int
    """Bytes of the compressed blob."""
    media_type: str = MEDIA_TYPE
    """What the blob is; layers of a base image may be compressed in another way."""


class Beside(Protocol):
    """Takes the folders and files of a layer as they are written."""

    def folder(self, path: str, mode: int) -> None:
        """Take a folder."""

    def file(self, path: str, mode: int, chunks: Iterable[bytes]) -> Iterable[bytes]:
        """Take a file, and pass on its chunks."""


class LayerWriter:
    """Writes one layer into an open file. Add entries in their order, then `close`."""

    def __init__(self, out: IO[bytes], beside: Beside | None = None) -> None:
        """``beside`` gets what is written too: folders and files of root's."""
        self._out, self._beside = out, beside
        self._tar_hash = hashlib.sha256()
        self._blob_hash = hashlib.sha256()
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL).compressobj()
        self._pending: list[bytes] = []
        self._pending_size = 0
        self._size = 0
        self.records: list[Record] = []

    def folder(self, path: str, mode: int = 0o755, *, uid: int = 0, gid: int = 0) -> None:
        """Add a folder."""
        self._write(header(path + "/", tarfile.DIRTYPE, mode, MTIME, uid=uid, gid=gid))
        self.records.append(Record(path, "dir", mode, "-", f"{uid}:{gid}"))
        if self._beside is not None:
            self._beside.folder(path, mode)

    def link(self, path: str, target: str) -> None:
        """Add a symbolic link."""
        self._write(header(path, tarfile.SYMTYPE, 0o777, MTIME, target=target))
        self.records.append(Record(path, "link", 0o777, target))

    def file(
        self, path: str, mode: int, size: int, chunks: Iterable[bytes], *, uid: int = 0, gid: int = 0
    ) -> str:
        """Add a file; return its sha256. ValueError when the chunks do not add up to ``size``."""
        self._write(header(path, tarfile.REGTYPE, mode, MTIME, size=size, uid=uid, gid=gid))
        content = hashlib.sha256()
        written = 0
        for chunk in chunks if self._beside is None else self._beside.file(path, mode, chunks):
            content.update(chunk)
            written += len(chunk)
            self._write(chunk)
        if written != size:
            raise ValueError(f"{path} has {written} bytes, not {size}")
        if size % tarfile.BLOCKSIZE:
            self._write(bytes(tarfile.BLOCKSIZE - size % tarfile.BLOCKSIZE))
        digest = content.hexdigest()
        self.records.append(Record(path, "file", mode, digest, f"{uid}:{gid}"))
        return digest

    def close(self) -> Layer:
        """End the tar and the blob, and return what they are. The file stays open."""
        self._write(bytes(2 * tarfile.BLOCKSIZE))
        self._drain()
        self._put(self._compressor.flush())
        return Layer(
            diff_id="sha256:" + self._tar_hash.hexdigest(),
            digest="sha256:" + self._blob_hash.hexdigest(),
            size=self._size,
        )

    def _write(self, data: bytes) -> None:
        self._pending.append(data)
        self._pending_size += len(data)
        # Hashing and compressing let other threads run, which pays only for more than a few kilobytes.
        if self._pending_size >= _FLUSH:
            self._drain()

    def _drain(self) -> None:
        data = self._pending[0] if len(self._pending) == 1 else b"".join(self._pending)
        self._pending, self._pending_size = [], 0
        self._tar_hash.update(data)
        self._put(self._compressor.compress(data))

    def _put(self, data: bytes) -> None:
        self._blob_hash.update(data)
        self._size += len(data)
        write_all(self._out, data)


def write_tar(blobs: Sequence[Path], target: Path, console: Console) -> None:
    """Unpack layers into one plain tar file, the whole of it or nothing."""
    with one_writer(target, console) as partial, partial.open("wb") as out:
        for number, blob in enumerate(blobs):
            if number:  # the end mark stands after the last one only
                out.seek(-2 * tarfile.BLOCKSIZE, os.SEEK_END)
            with open_blob(blob) as source:
                zstandard.ZstdDecompressor().copy_stream(source, out)


def parents(paths: Iterable[str]) -> list[str]:
    """Return all parent folders of some paths, sorted: each precedes its content."""
    found: set[str] = set()
    for path in paths:
        above = path.rpartition("/")[0]
        while above and above not in found:
            found.add(above)
            above = above.rpartition("/")[0]
    return sorted(found)
