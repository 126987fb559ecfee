"""Whether this machine can build and run images, and one lock's image in particular.

The driver is judged by what it says itself: a CUDA program needs a driver whose own CUDA is of the same major
version or a later one (CUDA's minor version compatibility).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from . import namespaces, process, sandbox
from .engines.gpu import gpu_access
from .errors import HostError
from .home import Home, free_bytes, size_text
from .index_settings import ca_bundle
from .lockfile import Lock

_UNPACKED = 4
"""An image takes about so many times the bytes that are fetched: packed, unpacked, and its layers."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    good: bool | None
    """None: of no matter here, such as a GPU on a machine that has none."""
    text: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Driver:
    """The NVIDIA driver and the GPUs."""

    version: str
    cuda: str
    """The newest CUDA that it knows, like ``12.4``."""
    gpus: tuple[tuple[str, str], ...]
    """Name and compute capability."""


def examine(lock: Lock | None, home: Home) -> tuple[Finding, ...]:
    """Look at all that a build and a run need. Changes nothing and asks no network."""
    found = [
        _tried("runtime", sandbox.runtime),
        _tried("namespaces", lambda: namespaces.check(all_ids=True)),
        _tried("mmdebstrap", lambda: process.require("mmdebstrap", "to install Debian packages")),
        _tried("apt", lambda: process.require("apt-get", "to resolve Debian packages")),
        _tried("certificates", lambda: ca_bundle() or "the system's"),
        _disk(lock, home),
    ]
    return (*found, *_gpu(lock))


def driver() -> Driver | str:
    """Return what the driver says, or why it says nothing."""
    program = process.which("nvidia-smi")
    if program is None:
        return "nvidia-smi is not installed"
    try:
        head = process.run([program], timeout=30).stdout.decode("utf-8", "replace")
        query = [program, "--query-gpu=name,compute_cap", "--format=csv,noheader"]
        rows = process.run(query, timeout=30).stdout.decode("utf-8", "replace").splitlines()
    except (process.ProcessFailed, process.ProcessTimeout) as error:
        return f"nvidia-smi: {error}"
    version = re.search(r"Driver Version: *([0-9.]+)", head)
    cuda = re.search(r"CUDA (?:UMD )?Version: *([0-9]+\.[0-9]+)", head)
    if version is None or cuda is None:
        return "nvidia-smi names no driver and no CUDA"
    gpus = [tuple(part.strip() for part in row.rsplit(",", 1)) for row in rows if "," in row]
    return Driver(version[1], cuda[1], tuple((name, capability) for name, capability in gpus))


def too_old(found: Driver, lock: Lock) -> str | None:
    """Return why a driver cannot run a lock's CUDA; None when it can, or there is no CUDA in it."""
    if lock.request.cuda == "cpu" or int(found.cuda.split(".")[0]) >= int(lock.request.cuda.split(".")[0]):
        return None
    return (
        f"driver {found.version} knows CUDA up to {found.cuda}, and {lock.request.name} is for CUDA "
        f"{lock.request.cuda}"
    )


def _tried(name: str, check: Callable[[], object]) -> Finding:
    try:
        said = check()
    except HostError as error:
        return Finding(name, good=False, text=error.message, hint=error.hint)
    return Finding(name, good=True, text="works" if said is None else str(said))


def _disk(lock: Lock | None, home: Home) -> Finding:
    free = free_bytes(home.root)
    text = f"{size_text(free)} free in {home.root}"
    if lock is None:
        return Finding("disk", good=None, text=text)
    sizes = [p.wheel.size for p in lock.python] + [p.size for p in lock.conda] + [p.size for p in lock.debian]
    sizes += [layer.size for layer in lock.base.layers] if lock.base is not None else []
    needed = sum(sizes) * _UNPACKED
    hint = "`reprobuild clean` removes what no image needs; REPROBUILD_HOME names another place"
    return Finding("disk", needed <= free, f"{text}; about {size_text(needed)} are needed", hint)


def _gpu(lock: Lock | None) -> list[Finding]:
    access, found = gpu_access(), driver()
    if isinstance(access, str) and isinstance(found, str):
        return [Finding("GPU", good=None, text=access)]
    if isinstance(access, str):
        return [Finding("GPU", good=False, text=access)]
    if isinstance(found, str):
        return [Finding("GPU", good=True, text="can be handed in"), Finding("driver", good=None, text=found)]
    gpus = ", ".join(f"{name} (compute capability {capability})" for name, capability in found.gpus)
    reason = None if lock is None else too_old(found, lock)
    text = reason or f"{found.version}, for CUDA up to {found.cuda}"
    hint = "install a newer driver, or ask for an older CUDA"
    return [Finding("GPU", good=True, text=gpus), Finding("driver", reason is None, text, hint)]
