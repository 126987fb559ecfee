"""Run as a program: ``no_sync.py PROGRAM...`` runs one, and all that it starts, with fsync(2) doing nothing.

For what installs packages into a folder that is thrown away if it is not finished: dpkg waits for the disk
thousands of times, each time also for the gigabytes that a build writes beside it. A filter of the kernel's
answers in its place (seccomp(2)), as systemd-nspawn's ``--suppress-sync`` does. Where none can be set the
program waits as ever. Imports nothing of reprobuild.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

_CALLS = {
    "x86_64": (0xC000003E, (74, 75, 162, 277, 306)),
    "aarch64": (0xC00000B7, (82, 83, 81, 84, 267)),
}
"""Machine → AUDIT_ARCH of linux/audit.h, and fsync, fdatasync, sync, sync_file_range, syncfs."""

_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
"""BPF_LD|BPF_W|BPF_ABS, BPF_JMP|BPF_JEQ|BPF_K, BPF_RET|BPF_K of linux/bpf_common.h."""

_ALLOW, _SUCCEED = 0x7FFF0000, 0x00050000
"""SECCOMP_RET_ALLOW, and SECCOMP_RET_ERRNO with no error."""

_SET_SECCOMP, _FILTER = 22, 2
"""PR_SET_SECCOMP of prctl(2), SECCOMP_MODE_FILTER."""


def program(machine: str) -> bytes | None:
    """Return the seccomp filter for a machine's uname(2) name; None if its system calls are unknown."""
    if machine not in _CALLS:
        return None
    audit, calls = _CALLS[machine]
    count = len(calls)
    steps = [
        (_LOAD, 0, 0, 4),  # seccomp_data.arch
        (_EQUAL, 0, count + 1, audit),  # of another: allow
        (_LOAD, 0, 0, 0),  # seccomp_data.nr
        *((_EQUAL, count - n, 0, call) for n, call in enumerate(calls)),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _SUCCEED),
    ]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def main() -> None:
    """Become the program."""
    argv = sys.argv[1:]
    steps = program(os.uname().machine)
    if steps is not None:
        given = ctypes.create_string_buffer(steps, len(steps))
        described = struct.pack("HP", len(steps) // 8, ctypes.addressof(given))  # struct sock_fprog
        libc = ctypes.CDLL(None)
        libc.prctl(_SET_SECCOMP, ctypes.c_ulong(_FILTER), ctypes.c_char_p(described), 0, 0)
    os.execvp(argv[0], argv)  # noqa: S606 -- no shell is wanted


if __name__ == "__main__":
    main()
