"""Removes folders that hold what their owner cannot remove in the plain way."""

from __future__ import annotations

import errno
import os
import re
import shutil
from pathlib import Path

from ..errors import HostError
from . import namespaces, process


def remove_tree(folder: Path) -> None:
    """Remove a folder with all that is in it. Raises `OSError`, also where something is mounted in it.

    Programs in a user namespace leave folders without a right for their owner, and files of subordinate ids:
    an ordinary user removes those as root of such a namespace.
    """
    if _has_mounts(folder):
        raise OSError(errno.EBUSY, "something is mounted in it", str(folder))
    try:
        shutil.rmtree(folder)
    except PermissionError:
        # Not every user has subordinate ids; then there are no files of theirs either.
        if os.geteuid() == 0 or not (_removed(folder, all_ids=True) or _removed(folder, all_ids=False)):
            raise


def _has_mounts(folder: Path) -> bool:
    # Root would remove what is mounted, too: the host's /dev/shm for one, below a root that mmdebstrap made.
    inside = str(folder.absolute()) + "/"
    lines = Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape").splitlines()
    points = (line.split(" ")[4] for line in lines)  # octal for a space or a tab, see proc(5)
    return any(re.sub(r"\\(\d{3})", _octal, point).startswith(inside) for point in points)


def _octal(match: re.Match[str]) -> str:
    return chr(int(match[1], 8))


def _removed(folder: Path, *, all_ids: bool) -> bool:
    try:
        process.run([*namespaces.prefix(all_ids=all_ids), "rm", "-rf", "--", str(folder)])
    except (process.ProcessFailed, HostError):
        return False
    return True
