"""Reasons that the operating system gives, said so that they help."""

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
    """Say by which signal a program ended that said nothing; a shell reports 128 more than the signal."""
    number = -returncode if returncode < 0 else returncode - 128
    try:
        return f"it was killed ({signal.Signals(number).name})"
    except ValueError:
        return ""
