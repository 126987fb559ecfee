"""Removes folders that hold what their owner cannot remove in the plain way."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from . import namespaces, process
from .errors import HostError


def remove_tree(folder: Path) -> None:
    """Remove a folder with all that is in it. Raises `OSError`.

    Programs in a user namespace leave folders without a right for their owner, and files of subordinate ids:
    an ordinary user removes those as root of such a namespace.
    """
    try:
        shutil.rmtree(folder)
    except PermissionError:
        # Not every user has subordinate ids; then there are no files of theirs either.
        if os.geteuid() == 0 or not (_removed(folder, all_ids=True) or _removed(folder, all_ids=False)):
            raise


def _removed(folder: Path, *, all_ids: bool) -> bool:
    try:
        process.run([*namespaces.prefix(all_ids=all_ids), "rm", "-rf", "--", str(folder)])
    except (process.ProcessFailed, HostError):
        return False
    return True
