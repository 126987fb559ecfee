"""Whether this machine can run programs of another platform, so that Docker and Podman build its images."""

from __future__ import annotations

from pathlib import Path

from ...errors import HostError
from ...host.machine import architecture
from ...lock.model import MACHINES

_BINFMT = Path("/proc/sys/fs/binfmt_misc")


def check_platform(platform: str, engine: str = "docker") -> None:
    """Raise `HostError` when an engine cannot make images of a platform on this machine.

    The embedded engine makes images for this machine's platform. Docker and Podman make others if the kernel
    starts an emulator for their programs, also inside containers.
    """
    here = f"linux/{architecture()}"
    if platform == here:
        return
    machine = MACHINES[platform]
    if engine == "oci":
        raise HostError(
            f"the lock is for {platform}, but the embedded engine only makes images for this machine, {here}",
            hint=f"run it on an {machine} machine, or with --engine docker or podman, --independent and an "
            f"emulator ({_emulator(machine)})",
        )
    if not _emulated(machine):
        raise HostError(
            f"the lock is for {platform}, but this machine, {here}, has no emulator for {machine} programs",
            hint=f"run it on an {machine} machine, or install an emulator: {_emulator(machine)}",
        )


def _emulator(machine: str) -> str:
    return f"binfmt_misc with qemu-{machine}, as Debian's qemu-user-static and binfmt-support set it up"


def _emulated(machine: str) -> bool:
    try:
        lines = (_BINFMT / f"qemu-{machine}").read_text("utf-8").splitlines()
    except OSError:
        return False
    flags = next((line.partition(":")[2] for line in lines if line.startswith("flags:")), "")
    # F: the kernel has already opened the emulator, so it need not be in the container.
    return "enabled" in lines and "F" in flags
