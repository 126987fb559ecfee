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
from ...host.machine import choosing_variable, visible_devices
from ...lock.model import UNPACKED, Lock
from ...net.index_settings import ca_bundle
from .forward_compatibility import forward_compatibility, other_libcuda
from .image_needs import Needs, is_known, needs_of
from .nvidia_smi import BROKEN, Card, chosen, driver


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
        none = f"{choosing_variable()} is {visible['CUDA_VISIBLE_DEVICES'][:100]!r}, the UUID of no GPU here"
        return [Finding("GPU", good=False, text=none, hint="`nvidia-smi -L` lists them")]
    known = f"{found.version}, supports CUDA up to {found.cuda}"
    driver_good: bool | None = True
    remedy = "install a newer driver, or request an older CUDA"
    if needs is not None and (old := needs.refusal_of_driver(found.version, found.cuda)) is not None:
        newer = forward_compatibility(needs, found, access, gpus)
        known, driver_good = (old, False) if newer is None else (f"{old}; but {newer}", None)
    elif (other := other_libcuda(found, access, gpus)) is not None:
        known, driver_good = other
        remedy = (
            "take its folder out of LD_LIBRARY_PATH, or write the CDI file anew (`nvidia-ctk cdi generate`)"
        )
    return [
        _unless_unknown(_gpus(needs, gpus, unsure), access),
        Finding("driver", driver_good, known, remedy),
    ]


def _unless_unknown(found: Finding, access: GpuAccess) -> Finding:
    """Return a finding that is not good where what is passed in may lack something."""
    unknown = not_known(access) if found.good else None
    return found if unknown is None else replace(found, good=None, text=f"{found.text}; {unknown}")


def _gpus(needs: Needs | None, gpus: Sequence[Card], unsure: str) -> Finding:
    """Check the GPUs that may be meant; ``unsure``: why it is not known which CUDA counts first."""
    usable = [gpu for gpu in gpus if not gpu.fault]
    faults = dict.fromkeys(gpu.fault for gpu in gpus if gpu.fault)  # each kind once
    if not usable:
        remedies = dict.fromkeys(gpu.remedy for gpu in gpus)
        text = "; ".join(faults) or "nvidia-smi lists none"
        return Finding("GPU", good=False if gpus else None, text=text, hint="; ".join(remedies))
    refusals = [None if needs is None else needs.refusal_of_gpu(gpu.name, gpu.capability) for gpu in usable]
    runs = [gpu for gpu, refusal in zip(usable, refusals, strict=True) if refusal is None]
    listed = ", ".join(f"{gpu.name} (compute capability {gpu.capability})" for gpu in runs)
    unknown = needs is not None and needs.gpu_targets and not all(is_known(gpu.capability) for gpu in usable)
    hint, good, first = "request a PyTorch that has code for this GPU", None, ""
    if not runs:
        good = False
    elif refusals[0] is not None and usable[0] is gpus[0] and not unsure:
        good, first = False, "CUDA counts this GPU first"
        hint += ", or put the UUID of another GPU into CUDA_VISIBLE_DEVICES (`nvidia-smi -L` lists them)"
    elif not (unknown or faults or (unsure and len(runs) < len(usable))):
        good = True
    refused = [refusal for refusal in dict.fromkeys(refusals) if refusal is not None]
    order = [*refused, first, listed] if first else [listed, *refused]
    return Finding("GPU", good, "; ".join(filter(None, (*order, *faults, unsure))), hint)


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
