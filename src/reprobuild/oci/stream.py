"""Streaming of archives and layouts, so that gigabytes need no temporary copy."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import lzma
import os
import posixpath
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, BytesIO, RawIOBase
from pathlib import Path
from typing import IO, Any, cast

import zstandard

from ..errors import ImageError
from ..host.home import open_regular
from .documents import DOCUMENT_LIMIT, parse_json
from .tar_reader import Reader

CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Member:
    """A file of an archive, or a link to another."""

    name: str
    file: BufferedReader | None
    target: str = ""
    """Target of a link."""


@contextmanager
def piped(write: Callable[[IO[bytes]], object]) -> Iterator[IO[bytes]]:
    """Yield the reading end of a pipe that another thread writes; its exception is raised at the end."""
    reading, writing = os.pipe()
    failure: list[BaseException] = []

    def work() -> None:
        try:
            with os.fdopen(writing, "wb", buffering=CHUNK) as out:
                write(out)
        except BrokenPipeError:
            pass  # the reader has gone; whoever that is says why
        except BaseException as error:  # noqa: BLE001 -- carried over to the reader's thread
            failure.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        with os.fdopen(reading, "rb", buffering=CHUNK) as file:
            yield file
    finally:
        thread.join()
    if failure:
        raise failure[0]


def from_chunks(chunks: Iterable[bytes]) -> IO[bytes]:
    """Return a file to read out of what comes in chunks."""
    return cast("IO[bytes]", BufferedReader(_Chunks(chunks), CHUNK))


def archive_members(file: BufferedReader) -> Iterator[Member]:
    """Yield the members of a tar that may be compressed; see `members`."""
    start = file.peek(6)[:6]
    if start.startswith(b"BZh") or start == b"\xfd7zXZ\0":
        return members(cast("IO[bytes]", _Slow(bz2.open(file) if start[:1] == b"B" else lzma.open(file))))
    return members(decompressed(file) or file)


def decompressed(file: BufferedReader) -> IO[bytes] | None:
    """Return the content of a file in zstd or gzip; None for another format."""
    start = file.peek(4)[:4]
    if start == b"\x28\xb5\x2f\xfd":
        inflate = zstandard.ZstdDecompressor()
        return cast("IO[bytes]", inflate.stream_reader(file, read_across_frames=True))
    return cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if start.startswith(b"\x1f\x8b") else None


class _Slow:
    """A file in an older compression format, whose errors are reported as a truncated stream."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int) -> bytes:
        try:
            return self._file.read(size)
        except (OSError, lzma.LZMAError) as error:
            raise EOFError(str(error)) from None


def members(tar: IO[bytes]) -> Iterator[Member]:
    """Yield the files and links of a tar, in its order. Each file can be read until the next is asked for.

    Raises `LayerRefused` for what no tool writes into an archive of an image.
    """
    reader = Reader(tar)
    for entry in reader:
        if entry.kind == "file":
            yield Member(entry.path, BufferedReader(_Chunks(reader.content()), CHUNK))
        elif entry.kind == "hardlink":
            yield Member(entry.path, None, entry.target)
        elif entry.kind == "link":
            folder = posixpath.dirname(entry.path)
            yield Member(entry.path, None, posixpath.normpath(posixpath.join(folder, entry.target)))


def layout_members(folder: Path, digest: str) -> Iterator[Member]:
    """Yield the files of an OCI layout that belong to one image, by the digest of its manifest.

    Raises `ImageError` when one is missing, or is not a regular file.
    """
    try:
        index = {"manifests": [{"digest": digest}]}
        yield Member("index.json", BufferedReader(BytesIO(json.dumps(index).encode())))
        with open_regular(_blob(folder, digest)) as file:
            manifest = parse_json(file.read(DOCUMENT_LIMIT))
        layers = (layer["digest"] for layer in manifest["layers"])
        for blob in sorted({digest, manifest["config"]["digest"], *layers}):
            with open_regular(_blob(folder, blob)) as file:
                yield Member(f"blobs/{blob.replace(':', '/')}", file)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ImageError(f"{folder}: not an OCI layout that can be read: {error}") from None


def _blob(folder: Path, digest: str) -> Path:
    if not re.fullmatch("sha256:[0-9a-f]{64}", digest):
        raise ValueError(f"{digest[:80]!r} is not a sha256 digest")
    return folder / "blobs" / digest.replace(":", "/")


class Hashed(RawIOBase):
    """A file whose bytes are hashed and counted as they are read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._hash, self.size = file, hashlib.sha256(), 0

    @property
    def digest(self) -> str:
        """``sha256:…`` of what was read so far."""
        return "sha256:" + self._hash.hexdigest()

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read as `RawIOBase` does."""
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self._hash.update(data)
        self.size += len(data)
        return len(data)


class _Chunks(RawIOBase):
    """A readable file over an iterator of chunks."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks, self._rest = iter(chunks), memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size
