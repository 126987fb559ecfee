"""The machine's architecture, and a hash of all that the results of a program on it may depend on."""

from __future__ import annotations

import hashlib
import os
import platform
import re
from pathlib import Path

from ..errors import HostError

_FACTS = ("sys/kernel/random/boot_id", "cpuinfo", "driver/nvidia/version", "driver/nvidia/gpus/*/information")
_VARYING = re.compile(r"^(cpu MHz|bogomips)\b.*$", re.MULTILINE)


def identity(proc: Path = Path("/proc")) -> str | None:
    """Return a hash of this boot, the kernel, the processors, those that we may use, and the GPUs.

    None where the kernel does not say which boot this is.
    """
    facts = [platform.release(), repr(sorted(os.sched_getaffinity(0)))]
    try:
        for path in (found for pattern in _FACTS for found in sorted(proc.glob(pattern))):
            facts += [path.relative_to(proc).as_posix(), _VARYING.sub("", path.read_text(errors="replace"))]
    except OSError:
        return None
    if not any(fact.endswith("boot_id") for fact in facts):
        return None
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()


def architecture() -> str:
    """Return Debian's name of this machine: ``amd64`` or ``arm64``. Raises `HostError` on any other."""
    machine = platform.machine()
    names = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
    if machine not in names:
        raise HostError(
            f"this machine is a {machine}; images are made for x86_64 and aarch64",
            hint="run reprobuild on a machine of the kind that the image is for",
        )
    return names[machine]
