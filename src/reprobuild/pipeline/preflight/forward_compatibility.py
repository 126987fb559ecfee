"""CUDA's forward compatibility: a newer libcuda than the driver's own.

The package cuda-compat has it (docs.nvidia.com/deploy/cuda-compatibility). It is supported on data-center
GPUs, some RTX cards and Jetson boards, and for some branches of drivers: whether it works here, only a CUDA
program can tell.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...engines.cdi import GpuAccess
from .image_needs import Needs
from .nvidia_smi import Driver

_NEVER = re.compile(r"\b(GeForce|TITAN)\b")
"""GPUs for which it is not (error 804)."""


def forward_compatibility(
    needs: Needs, found: Driver, access: GpuAccess, gpus: Sequence[tuple[str, str]]
) -> str | None:
    """Return which newer libcuda may help a driver that is too old, and what that depends on; None: none."""
    if any(_NEVER.search(name) for name, _ in gpus):
        return None
    limits = "NVIDIA supports that on data-center GPUs and for some drivers alone"
    library = _library(access)
    if library is not None and needs.is_new_enough(library[1]) and _major(library[1]) > _major(found.version):
        return f"{library[0]} of driver {library[1]} is passed in (forward compatibility): {limits}"
    if needs.own_libcuda:
        return f"the image may have a newer libcuda of its own (cuda-compat): {limits}"
    return None


def _library(access: GpuAccess) -> tuple[str, str] | None:
    """Return path and version of the libcuda that a container gets."""
    for bind in access.binds:
        if re.fullmatch(r".*/libcuda\.so\.1", bind.destination):
            version = re.fullmatch(r"libcuda\.so\.([0-9]+\.[0-9.]+)", bind.source.resolve().name)
            return (str(bind.source), version[1]) if version else None
    return None


def _major(version: str) -> int:
    return int(version.split(".", maxsplit=1)[0])
