"""Removal of folders whose permissions prevent removal."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from pathlib import Path

from ..errors import HostError
from . import namespaces, process
from .descriptors import FOLDER, closing_descriptor
from .os_reasons import FULL

_NO_NEW_NAME = (*FULL, errno.EXDEV)
"""A full disk takes no new name, and overlayfs none of a folder of a lower layer."""


def remove_tree(folder: Path) -> None:
    """Remove a folder with all that is in it. Raises `OSError`, also where something is mounted in it.

    Programs in a user namespace leave folders without a right for their owner, and files of subordinate ids:
    an ordinary user removes those as root of such a namespace.
    """
    # Root would remove what is mounted, too: the host's /dev/shm for one, below a root that mmdebstrap made.
    if mounts_below(folder.absolute()):
        raise OSError(errno.EBUSY, "something is mounted in it", str(folder))
    try:
        _remove(folder)
    except OSError as error:
        error.filename = f"{folder}: {error.filename}"  # which is relative, and that of a folder moved aside
        if not isinstance(error, PermissionError):
            raise
        # Not every user has subordinate ids; then there are no files of theirs either.
        if os.geteuid() == 0 or not (_removed(folder, all_ids=True) or _removed(folder, all_ids=False)):
            raise


def _remove(folder: Path) -> None:
    """Remove a folder. Nothing here grows with the depth: no stack, no path and no open files.

    A folder in it that is not empty is first moved to its top: `shutil.rmtree` opens a file and calls itself
    for each level (python/cpython#89727), and a program can leave thousands.
    """
    with closing_descriptor(os.open(folder, FOLDER | os.O_NOFOLLOW)) as top:
        mark, count = f".removed-{secrets.token_hex(8)}", 0
        waiting = [_empty(top)]
        while waiting:
            for name in waiting.pop():
                moved = []
                with closing_descriptor(os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=top)) as inner:
                    for below in _empty(inner):
                        count += 1
                        moved.append(f"{mark}-{count}")
                        try:
                            os.rename(below, moved[-1], src_dir_fd=inner, dst_dir_fd=top)
                        except OSError as error:
                            if error.errno not in _NO_NEW_NAME:
                                raise
                            moved.pop()
                            try:
                                shutil.rmtree(below, dir_fd=inner)
                            except RecursionError:  # deeper than rmtree goes: it stays until there is room
                                raise error from None
                waiting.append(moved)
                os.rmdir(name, dir_fd=top)
    folder.rmdir()


def _empty(folder: int) -> list[str]:
    """Remove the content of an open folder except non-empty folders; return the names of those."""
    left = []
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        try:
            if is_folder:
                os.rmdir(name, dir_fd=folder)
            else:
                os.unlink(name, dir_fd=folder)
        except OSError as error:
            if not is_folder or error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            left.append(name)
    return left


def mounts_below(folder: Path) -> list[Path]:
    """Return what is mounted below an absolute path, without links, the upper ones first."""
    lines = Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape").splitlines()
    places = {Path(unescaped(line.split(" ")[4])) for line in lines}
    return sorted(place for place in places if place != folder and place.is_relative_to(folder))


def unescaped(path: str) -> str:
    """Return a path as mountinfo has it without its octal numbers, see proc(5)."""
    return re.sub(r"\\(\d{3})", _octal, path)


def _octal(match: re.Match[str]) -> str:
    return chr(int(match[1], 8))


def _removed(folder: Path, *, all_ids: bool) -> bool:
    try:
        process.run([*namespaces.prefix(all_ids=all_ids), "rm", "-rf", "--", str(folder)])
    except (process.ProcessFailed, HostError):
        return False
    return True
