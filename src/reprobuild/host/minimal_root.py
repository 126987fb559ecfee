"""Run a program of this machine in a minimal root: the machine's programs and one folder.

For mmdebstrap, which starts what Debian packages bring as root: such a script finds no file of the host, not
through ``/proc/1/root`` either, no network, and no user or capability that counts outside.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from . import namespaces, process
from .limits import LARGEST_FILE, default_processes, guarded, of_steps
from .own_program import own_program

WORK = "/build"
"""Where the folder is, whatever its path on the host."""

_FIRST, _COUNT = 1879048192, 65536
"""Ids of the host for root's namespace: the first behind those of systemd's containers, of nobody else's
(systemd, docs/UIDS-GIDS.md)."""

_BURST = 256
"""Processes above the limit, of an ordinary user, until Linux refuses to start one."""
_CAPABILITIES = (
    *("chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap", "setfcap"),
    *("sys_chroot", "sys_admin"),
)
"""Those of a container in Docker, with that to mount and without that to make device nodes."""

# Relative paths alone: this folder's own path may hold any character, and lead through folders that the
# namespace's root may not enter.
_SETUP = """
set -e
ulimit -c 0
ulimit -f "$LARGEST_BLOCKS"  # of 512 bytes
prlimit --pid $$ --nproc="$MOST_PROCESSES:$MOST_PROCESSES" 2>/dev/null || true  # the user's own may be lower
export LIBMOUNT_FORCE_MOUNT2=always
mkdir -p root.new
mount -t tmpfs -o mode=755 tmpfs root.new
for name in usr bin sbin lib lib32 lib64 libx32; do
  if [ -L "/$name" ]; then ln -s "$(readlink "/$name")" "root.new/$name"
  elif [ -d "/$name" ]; then
    mkdir "root.new/$name"
    mount --rbind "/$name" "root.new/$name"
    mount -o remount,bind,ro,nosuid "root.new/$name" 2>/dev/null || true
  fi
done
for name in dev etc proc run sys tmp var build; do mkdir "root.new/$name"; done
for name in alternatives ld.so.cache ld.so.conf ld.so.conf.d dpkg perl passwd group nsswitch.conf; do
  if [ -e "/etc/$name" ]; then cp -r "/etc/$name" root.new/etc/; fi
done
for name in null zero full random urandom tty; do
  : >"root.new/dev/$name"
  mount --bind "/dev/$name" "root.new/dev/$name"
done
ln -s /proc/self/fd root.new/dev/fd
mount --rbind /proc root.new/proc
mount -t sysfs -o ro sysfs root.new/sys || true
mount --no-canonicalize --bind . root.new/build  # the path to it is shut
cd -P root.new
mkdir old
pivot_root . old
umount -l /old
rmdir /old
cd /build
exec setpriv --bounding-set "$CAPABILITIES" -- "$@"
"""


def run(folder: Path, argv: Sequence[str], *, env: Mapping[str, str], timeout: float) -> process.Completed:
    """Run to the end, within a step's limits, with ``folder`` as `WORK`, which alone it can write.

    Raises `HostError` where the namespaces cannot be made, `process.ProcessFailed`, `process.ProcessTimeout`,
    `process.LimitReached`.
    """
    namespaces.check_programs()
    own = _own_users()
    if own:
        os.chown(folder, _FIRST, _FIRST)
    capabilities = ",".join(["-all", *(f"+{name}" for name in _CAPABILITIES)])
    apart = [*namespaces.prefix(all_ids=True), "--net"]
    # Set with the rights of root, here or in the namespace: the one of `own` may not enter every folder.
    apart = [*_program("no_sync.py"), *own, *apart] if own else [*apart, *_program("no_sync.py")]
    command = [*apart, "sh", "-c", _SETUP, "sh", *argv]
    limits = of_steps()
    # Above the limit that is counted and named: without a control group, Linux stops a burst before that.
    most = (limits.processes or default_processes()) + _BURST
    env = {**env, "CAPABILITIES": capabilities, "LARGEST_BLOCKS": str(LARGEST_FILE // 512)}
    env["MOST_PROCESSES"] = str(most)
    with guarded(limits) as guard:
        return process.run(command, cwd=folder, env=env, timeout=timeout, guard=guard)


@cache
def _own_users() -> tuple[str, ...]:
    """Return the prefix that gives root's program a user namespace; empty where Linux refuses it."""
    if os.geteuid() != 0:
        return ()  # `namespaces.prefix` does
    words = (*_program("user_namespace.py"), str(_FIRST), str(_COUNT))
    try:
        process.run([*words, *namespaces.prefix(), "--net", "mount", "-t", "sysfs", "sysfs", "/sys"])
    except process.ProcessFailed:
        return ()
    return words


def _program(name: str) -> tuple[str, ...]:
    return sys.executable, "-I", "-S", str(own_program(name))
