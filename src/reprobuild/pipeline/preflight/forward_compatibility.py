"""CUDA's forward compatibility: a newer libcuda than the driver's own.

The package cuda-compat has it (docs.nvidia.com/deploy/cuda-compatibility). It is supported on data-center
GPUs, some RTX cards and Jetson boards, and for some branches of drivers: whether it works here, only a CUDA
program can tell.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...engines.cdi import GpuAccess
from .image_needs import Needs, release
from .nvidia_smi import Card, Driver

_NEVER = re.compile(r"\b(GeForce|TITAN)\b")
"""GPUs for which it is not (error 804)."""
_LIMITS = "NVIDIA supports that on data-center GPUs and for some drivers alone"
_LIBCUDA = re.compile(r"libcuda\.so\.([0-9]{3,}\.[0-9.]+)")
"""The file's name, with the driver's version; in WSL and on Jetson boards it is libcuda.so.1.1."""


def forward_compatibility(needs: Needs, found: Driver, access: GpuAccess, gpus: Sequence[Card]) -> str | None:
    """Return which newer libcuda may help a driver that is too old, and what that depends on; None: none."""
    if any(_NEVER.search(gpu.name) for gpu in gpus):
        return None
    library = _library(access)
    if library is not None and needs.is_new_enough(library[1]) and _major(library[1]) > _major(found.version):
        return f"{library[0]} of driver {library[1]} is passed in (forward compatibility): {_LIMITS}"
    if needs.own_libcuda:
        return f"the image may have a newer libcuda of its own (cuda-compat): {_LIMITS}"
    return None


def other_libcuda(found: Driver, access: GpuAccess, gpus: Sequence[Card]) -> tuple[str, bool | None] | None:
    """Return what is wrong with a libcuda of another version than the driver's, and whether it may work.

    None: it is the driver's own, or its version is not known. False: CUDA refuses it (errors 803 and 804).
    """
    library = _library(access)
    if library is None or release(library[1]) == release(found.version):
        return None
    passed = f"{library[0]} of driver {library[1]} is passed in, but the loaded driver is {found.version}"
    if release(library[1]) < release(found.version):
        return f"{passed}: CUDA accepts no libcuda that is older than the driver", False
    if any(_NEVER.search(gpu.name) for gpu in gpus):
        return f"{passed}: CUDA accepts a newer libcuda on data-center GPUs alone", False
    return f"{passed} (forward compatibility): {_LIMITS}", None


def _library(access: GpuAccess) -> tuple[str, str] | None:
    """Return path and version of the libcuda that a container gets."""
    binds = [bind for bind in access.binds if "libcuda.so." in bind.destination]
    for bind in sorted(binds, key=lambda bind: not bind.destination.endswith("/libcuda.so.1")):
        version = _LIBCUDA.fullmatch(bind.source.resolve().name)
        return (str(bind.source), version[1]) if version else None
    return None


def _major(version: str) -> int:
    return release(version)[0]
