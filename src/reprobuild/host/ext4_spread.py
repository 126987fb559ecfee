"""Spread new folders over the block groups of ext4.

For minutes ext4 gives no new file the place of a deleted one, and for each file that is made it looks at all
such places again (``recently_deleted`` in fs/ext4/ialloc.c). Where ten thousand files were deleted a moment
ago, making as many takes twenty times as long as elsewhere.
"""

from __future__ import annotations

import array
import fcntl
import os
from contextlib import suppress
from pathlib import Path

from .descriptors import FOLDER, closing_descriptor

_GET_FLAGS, _SET_FLAGS = 0x80086601, 0x40086602
"""FS_IOC_GETFLAGS, FS_IOC_SETFLAGS of <linux/fs.h>, on machines of 64 bits; each has an int."""

_TOP = 0x00020000
"""FS_TOPDIR_FL: below are folders that have nothing to do with one another (chattr(1), ``T``)."""


def spread_below(folder: Path) -> None:
    """Set the flag that makes ext4 spread the folders below this one, where supported.

    Other file systems than ext4 do not know this, and have no need of it.
    """
    with suppress(OSError), closing_descriptor(os.open(folder, FOLDER)) as descriptor:
        flags = array.array("i", [0])
        fcntl.ioctl(descriptor, _GET_FLAGS, flags)
        if not flags[0] & _TOP:
            flags[0] |= _TOP
            fcntl.ioctl(descriptor, _SET_FLAGS, flags)
