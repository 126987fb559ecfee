"""Run as a program: ``user_namespace.py FIRST COUNT PROGRAM...`` runs one as root of its own user namespace.

Its ids 0 to COUNT are FIRST and so on outside. For the host's root alone, who may map ids that no
/etc/subuid gives; `unshare --map-users` wants it to. Imports nothing of reprobuild.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

_NEW_USER = 0x10000000  # CLONE_NEWUSER
_PDEATHSIG = 1  # PR_SET_PDEATHSIG


def main() -> None:
    """Replace this process with the program, or exit with status 125."""
    first, count, argv = sys.argv[1], sys.argv[2], sys.argv[3:]
    libc = ctypes.CDLL(None, use_errno=True)
    ours = os.getpid()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        # Still in the namespace outside, with the right to write the maps once there is a new one.
        os.close(writing)
        status = 1
        if os.read(reading, 1):
            for name in ("uid_map", "gid_map"):
                Path(f"/proc/{ours}/{name}").write_text(f"0 {first} {count}")
            status = 0
        os._exit(status)
    if libc.unshare(_NEW_USER):
        sys.exit(f"user_namespace: no user namespace: {os.strerror(ctypes.get_errno())}")
    os.write(writing, b"x")
    if os.waitpid(child, 0)[1]:
        sys.exit("user_namespace: the ids cannot be mapped")
    os.setgroups([])
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    libc.prctl(_PDEATHSIG, signal.SIGKILL)  # Linux drops it with a change of ids
    os.execvp(argv[0], argv)  # noqa: S606 -- no shell is wanted


if __name__ == "__main__":
    main()
