"""Whether this machine can build and run images, and one image in particular.

A CUDA program needs a driver whose own CUDA has the same major version or a later one (CUDA's minor version
compatibility), and code for the GPU that it runs on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ...engines.cdi import GpuAccess
from ...engines.gpu import gpu_access, not_known, not_there
from ...engines.select import taker
from ...errors import HostError
from ...host import control_groups, limits, namespaces, process, sandbox
from ...host.console import Console, size_text
from ...host.home import Home, free_bytes
from ...host.host import Host
from ...host.machine import visible_devices
from ...lock.model import UNPACKED, Lock
from ...net.index_settings import ca_bundle
from .forward_compatibility import forward_compatibility
from .image_needs import Needs, is_known, needs_of
from .nvidia_smi import BROKEN, chosen, driver, has_fault


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    name: str
    good: bool | None
    """None if it does not matter, like a GPU on a machine that has none."""
    text: str
    hint: str = ""


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


def examine_gpus(needs: Needs | None) -> list[Finding]:
    """Check the GPUs and the driver, for any image or for one. Raises `HostError` for a bad CDI file."""
    access, found = gpu_access(), driver()
    if isinstance(access, str):
        return [Finding("GPU", good=None if isinstance(found, str) else False, text=access)]
    if (lacking := not_there(access)) is not None:
        return [Finding("GPU", good=False, text=lacking.message, hint=lacking.hint)]
    if isinstance(found, str):
        broken = BROKEN.search(found) is not None
        remedy = "restart the machine, or load the driver that is installed; or use --gpu off"
        failed = found.startswith("nvidia-smi: ")
        passed = "can be passed to a container" + ", but nvidia-smi cannot ask it" * (failed and not broken)
        return [
            _unless_unknown(Finding("GPU", good=None if failed else True, text=passed), access),
            Finding("driver", good=False if broken else None, text=found, hint=remedy if broken else ""),
        ]
    visible = visible_devices()
    gpus, unsure = chosen(found, visible)
    if not gpus and found.gpus:
        none = f"CUDA_VISIBLE_DEVICES is {visible['CUDA_VISIBLE_DEVICES'][:100]!r}, the UUID of no GPU here"
        return [Finding("GPU", good=False, text=none, hint="`nvidia-smi -L` lists them")]
    known = f"{found.version}, supports CUDA up to {found.cuda}"
    driver_good: bool | None = True
    if needs is not None and (old := needs.refusal_of_driver(found.version, found.cuda)) is not None:
        newer = forward_compatibility(needs, found, access, gpus)
        known, driver_good = (old, False) if newer is None else (f"{old}; but {newer}", None)
    return [
        _unless_unknown(_gpus(needs, gpus, unsure), access),
        Finding("driver", driver_good, known, "install a newer driver, or request an older CUDA"),
    ]


def _unless_unknown(found: Finding, access: GpuAccess) -> Finding:
    """Return a finding that is not good where what is passed in may lack something."""
    unknown = not_known(access) if found.good else None
    return found if unknown is None else replace(found, good=None, text=f"{found.text}; {unknown}")


def _gpus(needs: Needs | None, gpus: Sequence[tuple[str, str]], unsure: str) -> Finding:
    """Check the GPUs that may be meant; ``unsure``: why it is not known which are."""
    listed = ", ".join(f"{name} (compute capability {capability})" for name, capability in gpus)
    usable = [gpu for gpu in gpus if not has_fault(gpu)]
    if not usable:
        says = f"nvidia-smi says {gpus[0][0]} of it" if gpus else "nvidia-smi lists none"
        return Finding("GPU", good=False if gpus else None, text=says, hint="restart the machine")
    refusals = [] if needs is None else [needs.refusal_of_gpu(*gpu) for gpu in usable]
    # Of several, one that can run it is enough: a machine may have an old card for its screen.
    if refusals and None not in refusals:
        good: bool | None = False
    else:
        unknown = needs is not None and needs.gpu_targets and not all(is_known(each) for _, each in usable)
        good = None if unknown or len(usable) < len(gpus) or (unsure and any(refusals)) else True
    text = "; ".join(dict.fromkeys(filter(None, refusals))) or listed  # each kind once
    more = f"; {unsure}" if unsure else ""
    return Finding("GPU", good, text + more, "request a PyTorch that has code for this GPU")


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
