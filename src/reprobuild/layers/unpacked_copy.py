"""Unpacked copy of a layer, written together with the layer instead of reading it again.

It is what `unpacked_layers.unpack` makes of the finished layer.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from ..errors import BuildError
from ..host.descriptors import FOLDER, closing_descriptor
from ..host.home import write_all
from ..oci.tar_writer import MTIME
from .unpack import NEW_FILE

T = TypeVar("T")

_OF_THE_PATH = (errno.ENAMETOOLONG, errno.EINVAL, errno.ENOTDIR, errno.EEXIST, errno.EILSEQ)
"""Error numbers about the path, not the disk; no other process writes in the folder."""


class LaidOut:
    """The folder of one layer of folders and files, all of them root's; nobody else can reach it.

    As an ordinary user all files belong to that user. Raises `OSError`, and `BuildError` for a path that the
    disk's file system cannot have.
    """

    def __init__(self, root: Path) -> None:
        root.mkdir()
        root.chmod(0o755)  # whatever the umask
        self.root = root
        self.size = 0
        """Bytes of its files."""
        self._descriptor = os.open(root, FOLDER)
        self._folders: list[tuple[str, int]] = []
        self._owners = os.geteuid() == 0

    def folder(self, path: str, mode: int) -> None:
        """Create a folder; its permissions are set last, since files are added until then."""
        _made(path, lambda: os.mkdir(path, 0o700, dir_fd=self._descriptor))
        self._folders.append((path, mode))

    def file(self, path: str, mode: int, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Write a file while its chunks pass through."""
        descriptor = _made(path, lambda: os.open(path, NEW_FILE, 0o600, dir_fd=self._descriptor))
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            for chunk in chunks:
                write_all(file, chunk)
                self.size += len(chunk)
                yield chunk
            self._dress(descriptor, mode)

    def finish(self) -> None:
        """Set the permissions and times of the folders."""
        for path, mode in sorted(self._folders, reverse=True):
            with closing_descriptor(os.open(path, FOLDER, dir_fd=self._descriptor)) as descriptor:
                self._dress(descriptor, mode)
        self.close()

    def close(self) -> None:
        """Close the folder, finished or not."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _dress(self, descriptor: int, mode: int) -> None:
        if self._owners:
            os.fchown(descriptor, 0, 0)
        os.fchmod(descriptor, mode)  # behind the owner, whose change takes the setuid bit away
        os.utime(descriptor, (MTIME, MTIME))


def _made(path: str, make: Callable[[], T]) -> T:
    try:
        return make()
    except OSError as error:
        if error.errno in _OF_THE_PATH:
            raise BuildError(f"/{path}: the disk cannot have this path: {error.strerror}") from None
        raise
