"""Reading of files that an untrusted program has left in a folder, after it has ended.

Such a folder may hold links to files of this machine, and pipes that never answer. Nothing here follows a
link, and only regular files are opened.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

from ..errors import BuildError

MOST_PATHS = 2_000_000
"""More than ten times as many as the largest images have."""
LONGEST_PATH = 4095
"""Bytes of a path that the system takes; a program that goes on from each folder can leave longer ones."""


def walk(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield each path below a folder, relative to it, with its ``lstat`` result, in no order.

    Raises `BuildError` for a folder that is a link, or holds more than `MOST_PATHS`.
    """
    if not stat.S_ISDIR(root.lstat().st_mode):
        raise BuildError(f"{root.name}: expected a folder, found something else in its place")
    todo, count = [""], 0
    while todo:
        top = todo.pop()
        with os.scandir(root / top) as entries:
            for entry in entries:
                count += 1
                if count > MOST_PATHS:
                    raise BuildError(f"{root.name}: holds more than {MOST_PATHS} files")
                path = f"{top}/{entry.name}" if top else entry.name
                if len(os.fsencode(entry.path)) > LONGEST_PATH:
                    raise BuildError(
                        f"{root.name}: folders in it are nested too deep to read: {top.partition('/')[0]}/…"
                    )
                found = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(found.st_mode):
                    todo.append(path)
                yield path, found


def size_below(root: Path) -> int:
    """Return the bytes of all regular files below a folder, which may change meanwhile."""
    total, todo = 0, [root]
    while todo:
        with suppress(OSError), os.scandir(todo.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    found = entry.stat(follow_symlinks=False)
                    total += found.st_size if stat.S_ISREG(found.st_mode) else 0
                    if stat.S_ISDIR(found.st_mode):
                        todo.append(Path(entry.path))
    return total


def folder(root: Path, path: str) -> Path | None:
    """Return a folder below another by its relative path; None if it does not exist.

    A link on the way to it, or at its end, is none.
    """
    found = root
    for part in path.split("/"):
        found /= part
        if not os.path.lexists(found) or not stat.S_ISDIR(found.lstat().st_mode):
            return None
    return found


def opened(root: Path, path: str) -> BufferedReader:
    """Open a regular file below a folder, by its relative path; no link is followed on the way to it.

    Raises `BuildError` for anything else, `FileNotFoundError` where there is nothing.
    """
    *folders, name = path.split("/")
    held = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        for part in folders:
            below = _open(part, held, os.O_DIRECTORY, path)
            os.close(held)
            held = below
        # A pipe without a writer would be waited for.
        file = _open(name, held, os.O_NONBLOCK, path)
    finally:
        os.close(held)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise _refused(path)
    return os.fdopen(file, "rb")


def _open(name: str, folder: int, flags: int, path: str) -> int:
    if name in ("", ".", ".."):
        raise _refused(path)
    try:
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO):
            raise _refused(path) from None
        raise


def _refused(path: str) -> BuildError:
    return BuildError(f"{path!r}: not a regular file below the folder it should be in")
