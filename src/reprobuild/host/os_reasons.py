"""Errors of the operating system, in more helpful words."""

from __future__ import annotations

import errno
import signal

SCARCE = {
    errno.EMFILE: "allow more open files: `ulimit -n 4096`",
    errno.ENFILE: "end some programs: the whole machine has too many files open",
    errno.ENOMEM: "end some programs, or run it on a machine with more memory",
    errno.EAGAIN: "allow more processes: `ulimit -u` says how many this user may have",
}
"""What to do where the kernel has no more of something, which is the fault of no file and no program."""


def killed_by(returncode: int) -> str:
    """Describe the signal that ended a program without output; a shell adds 128 to its number."""
    number = -returncode if returncode < 0 else returncode - 128
    try:
        return f"it was killed ({signal.Signals(number).name})"
    except ValueError:
        return ""
