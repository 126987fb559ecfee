"""Restrictions of every program in a sandbox: system calls, paths, devices, users.

Podman's defaults (containers/common, pkg/config/default.go and pkg/seccomp/seccomp.json), and less where a
program of an image has no use for it.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from . import process

OF_THE_BOOT = ("/proc/cmdline", "/proc/sys/kernel/random/boot_id", "/sys/devices/virtual/dmi")
"""Files that identify the machine and its boot: no build or test may depend on them."""

MASKED = (
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/dev/block",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
    "/sys/fs/selinux",
)
"""Paths that are empty in a sandbox: they reveal the host, or other programs' timing (Platypus)."""

READ_ONLY = ("/proc/asound", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")

_CHARACTER = {"allow": True, "type": "c", "access": "rwm"}
_DEFAULT_DEVICES = ((1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0), (5, 2))  # null to urandom, tty, ptmx
_PSEUDO_TERMINALS = 136


def seccomp(capabilities: Collection[str]) -> dict[str, Any]:
    """Return the filter of system calls for a program with these capabilities, in the OCI runtime's form.

    It lets no program make a namespace or a mount, whatever its capabilities.
    """
    found = json.loads((resources.files(__package__) / "seccomp.json").read_text("utf-8"))
    rules: list[dict[str, Any]] = found["syscalls"]
    if "SYS_CHROOT" in capabilities:
        rules = [{**rule, "names": [n for n in rule["names"] if n != "chroot"]} for rule in rules]
        rules.append({"names": ["chroot"], "action": "SCMP_ACT_ALLOW"})
    return {
        "defaultAction": found["defaultAction"],
        "defaultErrnoRet": found["defaultErrnoRet"],
        "architectures": found["architectures"].get(platform.machine(), []),
        "syscalls": rules,
    }


def device_rules(nodes: Sequence[Path]) -> list[dict[str, Any]]:
    """Return the rules for a control group's devices: none but the default ones and these nodes.

    They count where the runtime has a control group; that no device node can be opened on any mount but
    /dev's own counts everywhere.
    """
    numbers = list(_DEFAULT_DEVICES)
    rules: list[dict[str, Any]] = [{"allow": False, "access": "rwm"}]
    for node in nodes:
        status = node.stat()
        numbers.append((os.major(status.st_rdev), os.minor(status.st_rdev)))
    rules += [{**_CHARACTER, "major": major, "minor": minor} for major, minor in numbers]
    return [*rules, {**_CHARACTER, "major": _PSEUDO_TERMINALS}]


@cache
def user_namespace() -> Mapping[str, Sequence[Mapping[str, int]]]:
    """Return the ID mappings of a user namespace for root's sandboxes; empty if not possible.

    Every id stays what it is, so the files of an image keep their owners, and the program's root has no
    right over anything that is not inside. Linux refuses it, or /proc and /sys in it, in many a container.
    """
    if os.geteuid() != 0:
        return {}  # is in one already
    unshare = process.which("unshare")
    probe = ["--user", "--map-root-user", "--net", "--mount", "--propagation", "private", "--pid", "--fork"]
    mount = ["--mount-proc", "mount", "-t", "sysfs", "sysfs", "/sys"]
    try:
        process.run([unshare or "unshare", *probe, "--kill-child", *mount])
    except (process.ProcessFailed, OSError):
        return {}
    return {"uidMappings": _all_ids("uid_map"), "gidMappings": _all_ids("gid_map")}


def _all_ids(name: str) -> list[dict[str, int]]:
    lines = (Path("/proc/self") / name).read_text("ascii").splitlines()
    ranges = [(int(first), int(count)) for first, _, count in (line.split() for line in lines)]
    return [{"containerID": first, "hostID": first, "size": count} for first, count in ranges]
