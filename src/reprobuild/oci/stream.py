"""Archives and layouts that are written or read as they go by, so that gigabytes need no second place."""

from __future__ import annotations

import json
import os
import tarfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, BytesIO, RawIOBase
from pathlib import Path
from typing import IO, Any, cast

from ..errors import ImageError
from .tar_writer import MTIME

CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Member:
    """A file of an archive, or a link to another."""

    name: str
    file: BufferedReader | None
    target: str = ""
    """Of a link, as it stands in the archive."""


@contextmanager
def piped(write: Callable[[IO[bytes]], object]) -> Iterator[IO[bytes]]:
    """Give the reading end of a pipe that another thread writes; its exception is raised at the end."""
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


@contextmanager
def tar_of_folder(folder: Path) -> Iterator[IO[bytes]]:
    """Give a tar of all files in a folder to read; the same files give the same bytes."""

    def write(out: IO[bytes]) -> None:
        with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT, bufsize=CHUNK) as tar:
            for path in sorted(p for p in folder.rglob("*") if p.is_file()):
                info = tarfile.TarInfo(path.relative_to(folder).as_posix())
                info.size, info.mtime, info.mode = path.stat().st_size, MTIME, 0o644
                with path.open("rb") as file:
                    tar.addfile(info, file)

    with piped(write) as file:
        yield file


def tar_members(chunks: Iterable[bytes]) -> Iterator[Member]:
    """Give the members of a tar that comes in chunks. Each file can be read until the next is asked for."""
    with tarfile.open(fileobj=cast("IO[bytes]", _Chunks(chunks)), mode="r|", bufsize=CHUNK) as tar:
        yield from members(tar)


def members(tar: tarfile.TarFile) -> Iterator[Member]:
    """Give the files and links of an open tar, in its order."""
    for member in tar:
        name = member.name.removeprefix("./")
        if member.issym() or member.islnk():
            yield Member(name, None, member.linkname)
        elif member.isfile():
            yield Member(name, cast("BufferedReader", tar.extractfile(member)))


def layout_members(folder: Path, digest: str) -> Iterator[Member]:
    """Give the files of an OCI layout that belong to one image, by the digest of its manifest.

    Raises `ImageError` when one is missing.
    """
    try:
        index = {"manifests": [{"digest": digest}]}
        yield Member("index.json", BufferedReader(BytesIO(json.dumps(index).encode())))
        manifest = json.loads(_blob(folder, digest).read_bytes())
        layers = (layer["digest"] for layer in manifest["layers"])
        for blob in sorted({digest, manifest["config"]["digest"], *layers}):
            with _blob(folder, blob).open("rb") as file:
                yield Member(f"blobs/{blob.replace(':', '/')}", file)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ImageError(f"{folder}: not an OCI layout that can be read: {error}") from None


def _blob(folder: Path, digest: str) -> Path:
    return folder / "blobs" / digest.replace(":", "/")


class _Chunks(RawIOBase):
    """A file out of an iterator."""

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
