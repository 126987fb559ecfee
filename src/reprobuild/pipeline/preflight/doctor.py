"""Whether this machine can build and run images, and one image in particular.

A CUDA program needs a driver whose own CUDA has the same major version or a later one (CUDA's minor version
compatibility), and code for the GPU that it runs on.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from ...engines.gpu import gpu_access, not_there
from ...engines.select import taker
from ...errors import HostError
from ...host import control_groups, limits, namespaces, process, sandbox
from ...host.console import Console, size_text
from ...host.home import Home, free_bytes
from ...host.host import Host
from ...lock.model import UNPACKED, Lock
from ...net.index_settings import ca_bundle
from .image_needs import Needs, is_known, needs_of

_BROKEN = re.compile(r"nvidia-smi exited with (6|9|18)\b")
"""No GPU found, no driver loaded, or another version loaded than installed: no CUDA program runs then
(docs.nvidia.com/deploy/nvidia-smi, and nvmlReturn_t of its nvml-api)."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    name: str
    good: bool | None
    """None if it does not matter, like a GPU on a machine that has none."""
    text: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Driver:
    """The NVIDIA driver and the GPUs."""

    version: str
    cuda: str
    """The newest CUDA that it supports, like ``12.4``."""
    gpus: tuple[tuple[str, str], ...]
    """Name and compute capability."""


def examine(lock: Lock | None, host: Host) -> tuple[Finding, ...]:
    """Check the requirements of building and running, for any image or for a lock's.

    Changes nothing and needs no network.
    """
    found = [
        _tried("runtime", sandbox.runtime),
        _tried("sandbox", namespaces.check_programs),
        _limits(),
        _tried("namespaces", lambda: namespaces.check(all_ids=True)),
        _tried("mmdebstrap", lambda: process.require("mmdebstrap", "to install Debian packages")),
        _tried("apt", lambda: process.require("apt-get", "to resolve Debian packages")),
        _tried("certificates", lambda: ca_bundle() or "the system's"),
        _disk(lock, host.home),
        *(_engine(name, host) for name in ("docker", "podman")),
    ]
    needs = None if lock is None else needs_of(lock)
    return (*found, *_said(needs), *_gpus_or_fault(needs))


def examine_for(needs: Needs, host: Host) -> tuple[Finding, ...]:
    """Check the requirements of running an existing image. Changes nothing; works offline."""
    found = [_disk(None, host.home, builds=False), *(_engine(name, host) for name in ("docker", "podman"))]
    return (*found, *_said(needs), *_gpus_or_fault(needs))


def _gpus_or_fault(needs: Needs | None) -> list[Finding]:
    try:
        return examine_gpus(needs)
    except HostError as error:
        return [Finding("GPU", good=False, text=error.message, hint=error.hint)]


def driver() -> Driver | str:
    """Return the driver, or the reason why it is unknown."""
    program = process.which("nvidia-smi")
    if program is None:
        return "nvidia-smi is not installed"
    try:
        head = "\n".join(_asked(program))
        gpus = _gpus(program)
    except (process.ProcessFailed, process.ProcessTimeout) as error:
        return f"nvidia-smi: {error}"
    # Both were renamed in driver 610 (docs.nvidia.com/deploy/nvidia-smi): KMD is the kernel's part.
    version = re.search(r"(?:Driver|KMD) Version: *([0-9.]+)", head)
    cuda = re.search(r"CUDA (?:UMD )?Version: *([0-9]+\.[0-9]+)", head)
    if version is None or cuda is None:
        return "nvidia-smi printed no driver version or no CUDA version"
    return Driver(version[1], cuda[1], gpus)


def _gpus(program: str) -> tuple[tuple[str, str], ...]:
    """Return name and compute capability of each GPU, which the nvidia-smi of driver 470 does not know."""
    try:
        rows = [row.rpartition(",") for row in _asked(program, "--query-gpu=name,compute_cap")]
    except process.ProcessFailed:
        return tuple((name.strip(), "[N/A]") for name in _asked(program, "--query-gpu=name"))
    return tuple((name.strip(), capability.strip()) for name, comma, capability in rows if comma)


def _asked(program: str, *query: str) -> list[str]:
    """Return what nvidia-smi prints, line by line; the status 14 means a warning at its end."""
    argv = [program, *query, *(["--format=csv,noheader"] if query else [])]
    done = process.run(argv, timeout=30, check=False)
    if done.returncode not in (0, 14):
        raise process.ProcessFailed(argv, done.returncode, process.tail(done.stderr or done.stdout))
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    return [line for line in lines if not line.startswith("WARNING: infoROM")]


def examine_gpus(needs: Needs | None) -> list[Finding]:
    """Check the GPUs and the driver, for any image or for one. Raises `HostError` for a bad CDI file."""
    access, found = gpu_access(), driver()
    if isinstance(access, str):
        return [Finding("GPU", good=None if isinstance(found, str) else False, text=access)]
    if (lacking := not_there(access)) is not None:
        remedy = "regenerate it with `nvidia-ctk cdi generate`, or use --gpu off"
        return [Finding("GPU", good=False, text=lacking, hint=remedy)]
    if isinstance(found, str):
        broken = _BROKEN.search(found) is not None
        remedy = "restart the machine, or load the driver that is installed; or use --gpu off"
        return [
            Finding("GPU", good=None if broken else True, text="can be passed to a container"),
            Finding("driver", good=False if broken else None, text=found, hint=remedy if broken else ""),
        ]
    gpus = ", ".join(f"{name} (compute capability {capability})" for name, capability in found.gpus)
    known = f"{found.version}, supports CUDA up to {found.cuda}"
    if needs is None:
        return [Finding("GPU", good=True, text=gpus), Finding("driver", good=True, text=known)]
    old = needs.refusal_of_driver(found.version, found.cuda)
    refusals = [needs.refusal_of_gpu(*each) for each in found.gpus]
    # One that can run it is enough: a machine may have an old card for its screen. Each kind is named once.
    unsure = not all(is_known(capability) for _, capability in found.gpus)
    good = None if unsure and needs.gpu_targets else None in refusals or not refusals
    text = "; ".join(dict.fromkeys(filter(None, refusals))) or gpus
    return [
        Finding("GPU", good, text, "request a PyTorch that has code for this GPU"),
        Finding("driver", old is None, old or known, "install a newer driver, or request an older CUDA"),
    ]


def _tried(name: str, check: Callable[[], object]) -> Finding:
    try:
        said = check()
    except HostError as error:
        return Finding(name, good=False, text=error.message, hint=error.hint)
    return Finding(name, good=True, text="works" if said is None else str(said))


def _limits() -> Finding:
    """Check what enforces the limits of memory and processes: the kernel exactly, a count roughly."""
    try:
        limits.refuse_too_little()
    except HostError as error:
        return Finding("limits", good=False, text=error.message, hint=error.hint)
    bounded = {controller for place in control_groups.places() for controller in place.controllers}
    if bounded == {"memory", "pids"}:
        return Finding("limits", good=True, text="memory and processes are held by control groups")
    return Finding(
        "limits",
        good=None,
        text="you may make no control group, so reprobuild counts the memory and processes of a step itself",
    )


def _disk(lock: Lock | None, home: Home, *, builds: bool = True) -> Finding:
    free = free_bytes(home.root)
    text = f"{size_text(free)} free in {home.root}"
    if builds and (hint := sandbox.unstackable(home.root)):
        return Finding("disk", good=False, text=f"{text}, where no image is built or run", hint=hint)
    if lock is None:
        return Finding("disk", good=None, text=text)
    needed = lock.size * UNPACKED
    hint = "`reprobuild clean` removes what no image needs; REPROBUILD_HOME names another folder"
    return Finding("disk", needed <= free, f"{text}; needs about {size_text(needed)}", hint)


def _said(needs: Needs | None) -> list[Finding]:
    """What the image needs, also on a machine without a GPU."""
    if needs is None or needs.cuda is None:
        return []
    parts = [f"CUDA {needs.cuda}"]
    parts += [f"driver {needs.driver} or newer"] if needs.driver else []
    parts += [f"PyTorch has code for {', '.join(needs.gpu_targets)}"] if needs.gpu_targets else []
    return [Finding("needs", good=None, text="; ".join(parts))]


def _engine(name: Literal["docker", "podman"], host: Host) -> Finding:
    """Whether an engine answers; neither is needed, since the embedded engine builds too."""
    try:
        taker(name, replace(host, console=Console(quiet=True)))
    except HostError as error:
        return Finding(name, good=None, text=error.message.partition("\n")[0])
    return Finding(name, good=True, text="answers")
