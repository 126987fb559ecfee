"""Layer blobs → folders that overlayfs can stack, each unpacked once and shared by all images."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import zstandard

from . import process
from .console import Console
from .errors import ImageError
from .home import Home, storage_errors

_CHUNK = 1 << 20


def unpack(home: Home, console: Console, blob: Path, diff_id: str, advance: Callable[[int], None]) -> Path:
    """Return the folder of a layer, unpacked and verified against ``diff_id`` when it is not there yet.

    As an ordinary user all files belong to that user, who is root in the sandbox. ``advance`` gets the
    blob's bytes as they are read. Raises `ImageError` when the blob is damaged.
    """
    name = diff_id.removeprefix("sha256:")
    final = home.folder("roots") / name
    if final.is_dir():
        return final
    with home.lock(f"root-{name[:16]}", console), home.scratch("root") as scratch:
        if final.is_dir():
            return final
        root = scratch / "root"
        with storage_errors(root):
            root.mkdir(mode=0o755)
            found = _extract(blob, root, advance)
            if found != diff_id:
                raise ImageError(
                    f"{blob.name[:19]}…: the layer's bytes are not those of the image",
                    hint="`reprobuild clean --all` empties the stores; the next run builds them again",
                )
            root.rename(final)
    return final


@contextmanager
def in_use(folders: Sequence[Path]) -> Iterator[None]:
    """Keep `remove_unused` of other processes away from some layers' folders."""
    with ExitStack() as stack:
        for folder in folders:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield


def remove_unused(home: Home, wanted: Collection[str]) -> int:
    """Remove the folders of layers whose digest is not ``wanted``, but for those in use; return how many."""
    removed = 0
    for folder in sorted(home.folder("roots").iterdir()):
        if f"sha256:{folder.name}" in wanted:
            continue
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        finally:
            os.close(descriptor)
        remove_tree(folder)
        removed += 1
    return removed


def remove_tree(folder: Path) -> None:
    """Remove a folder, also one with folders in it that its owner may not write."""

    def retry(function: Callable[[str], object], path: str, _: object) -> None:
        for each in (Path(path).parent, Path(path)):
            if each.is_dir() and not each.is_symlink():
                each.chmod(0o700)
        function(path)

    with storage_errors(folder):
        shutil.rmtree(folder, onerror=retry)


def _extract(blob: Path, root: Path, advance: Callable[[int], None]) -> str:
    tar = process.require("tar", "to unpack layers")
    owner = "--same-owner" if os.geteuid() == 0 else "--no-same-owner"
    command = [tar, "--extract", "--numeric-owner", owner, "--preserve-permissions", "--directory", str(root)]
    content = hashlib.sha256()

    def feed(write: Callable[[bytes], object]) -> None:
        with blob.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
            position = 0
            while chunk := stream.read(_CHUNK):
                content.update(chunk)
                write(chunk)
                advance(file.tell() - position)
                position = file.tell()

    process.feed(command, feed)
    return "sha256:" + content.hexdigest()
