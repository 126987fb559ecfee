"""Hints for errors of the operating system."""

from __future__ import annotations

import errno
import os
import re
import signal
from datetime import UTC, datetime

SCARCE = {
    errno.EMFILE: "allow more open files: `ulimit -n 4096`",
    errno.ENFILE: "end some programs: the whole machine has too many files open",
    errno.ENOMEM: "end some programs, or run it on a machine with more memory",
    errno.EAGAIN: "allow more processes: `ulimit -u` limits a user, pids.max a control group",
}
"""What to do where the kernel has no more of something, which is the fault of no file and no program."""

FULL = (errno.ENOSPC, errno.EDQUOT)
"""Error numbers of a disk without free space, inodes or quota."""

UNREADABLE = (errno.EIO, errno.EUCLEAN, errno.EBADMSG)
"""Error numbers of a disk or file system that has lost the content of a file."""


_OTHER_TIME = re.compile(
    r"not yet valid|not valid yet|(?:has|is|certificate) expired|EXP(?:KEY)?SIG|created after|not live",
    re.IGNORECASE,
)
"""What apt, gpgv, sqv, OpenSSL and rustls say of a signature or certificate from before or after now."""


def clock_remedy(said: str, otherwise: str) -> str:
    """Return ``otherwise``; after the clock where a signature or certificate is one of another time."""
    if not _OTHER_TIME.search(said):
        return otherwise
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    return f"check the clock of this machine, which says {now}; if it is right, {otherwise}"


def shortage(error: BaseException) -> tuple[str, str] | None:
    """Return what the kernel or a limit lacks by an error that nothing else handles, and a remedy."""
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, MemoryError):
        number = errno.ENOMEM
    elif isinstance(error, RuntimeError) and str(error) == "can't start new thread":  # it has no number
        number = errno.EAGAIN
    remedy = SCARCE.get(number or 0)
    return (f"reprobuild cannot go on: {os.strerror(number)}", remedy) if number and remedy else None


def killed_by(returncode: int) -> str:
    """Describe the signal that ended a program without output; a shell adds 128 to its number."""
    number = -returncode if returncode < 0 else returncode - 128
    try:
        return f"it was killed ({signal.Signals(number).name})"
    except ValueError:
        return ""
