"""What an image needs from the machine that runs it, read from its lock or from its labels. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...lock.model import Lock
from ...render.image_config import oldest_driver
from ...render.labels import LABEL

_BOARDS = {(5, 3), (6, 2), (7, 2), (8, 7), (10, 1)}
"""The GPUs of Jetson and DRIVE boards: no other runs their machine code, and they run no other's
(torch/cuda/__init__.py, DEVICE_REQUIREMENT)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Needs:
    """What an image needs from a driver and GPUs; nothing if it is for the CPU."""

    name: str
    """The name of the image or request, for messages."""
    cuda: str | None
    """The CUDA version, like ``12.1``."""
    driver: str | None
    """The oldest driver; None if not known."""
    gpu_targets: Sequence[str]
    """What torch has code for, as CUDA writes them; empty where it is not known."""
    own_libcuda: bool = False
    """Whether the image may have a libcuda of its own, as a base image or a conda package brings it."""

    def refusal_of_driver(self, version: str, cuda: str) -> str | None:
        """Return why a driver that supports CUDA up to ``cuda`` is too old; None if it is not."""
        if self.cuda is None or (release(cuda)[:1] >= release(self.cuda)[:1] and self.is_new_enough(version)):
            return None
        wants = f", which needs driver {self.driver} or newer" if self.driver else ""
        return f"driver {version} supports CUDA up to {cuda}, but {self.name} is for CUDA {self.cuda}{wants}"

    def is_new_enough(self, version: str) -> bool:
        """Whether a driver of a version has what the CUDA of the image needs."""
        return self.driver is None or release(version) >= release(self.driver)

    def refusal_of_gpu(self, name: str, capability: str) -> str | None:
        """Return why torch has no code for a GPU of a compute capability like ``8.0``; None if it has.

        Machine code runs on GPUs of its major version and a minor version not below its own; PTX is compiled
        by the driver for any newer one.
        """
        if not self.gpu_targets or not is_known(capability):
            return None
        major, minor = (*release(capability), 0)[:2]
        if any(_runs(each, major, minor) for each in self.gpu_targets):
            return None
        return (
            f"{name} has compute capability {capability}, but the PyTorch of {self.name} only has code for "
            f"{', '.join(self.gpu_targets)}"
        )


def is_known(capability: str) -> bool:
    """Whether nvidia-smi knows the compute capability; for some GPUs it prints ``[N/A]``."""
    return re.fullmatch(r"[0-9]+\.[0-9]+", capability) is not None


def needs_of(lock: Lock) -> Needs:
    """Return what the image of a lock needs."""
    cuda = None if lock.request.cuda == "cpu" else lock.request.cuda
    return Needs(
        name=lock.request.name,
        cuda=cuda,
        driver=None if cuda is None else oldest_driver(cuda),
        gpu_targets=() if cuda is None else lock.gpu_targets,
        own_libcuda=lock.base is not None or any(each.name.startswith("cuda-compat") for each in lock.conda),
    )


def needs_of_labels(labels: Mapping[str, str], name: str) -> Needs:
    """Return what an image needs according to its labels."""
    found = re.fullmatch(r"([0-9]+\.[0-9]+).*", labels.get(LABEL + "cuda", ""))
    cuda = found[1] if found else None
    return Needs(
        name=name,
        cuda=cuda,
        driver=labels.get(LABEL + "driver"),
        gpu_targets=tuple(labels.get(LABEL + "architectures", "").split()),
        own_libcuda="org.opencontainers.image.base.name" in labels,
    )


def _runs(architecture: str, major: int, minor: int) -> bool:
    match = re.fullmatch(r"(sm|compute)_([0-9]+)([0-9])([a-z]?)", architecture)
    if match is None:
        return False
    kind, of_major, of_minor, exact = match[1], int(match[2]), int(match[3]), match[4]
    code, gpu = (of_major, of_minor), (major, minor)
    if exact == "a":
        return code == gpu
    if kind == "sm" and _BOARDS & {code, gpu}:
        return gpu == code or (code, gpu) == ((10, 1), (11, 0))  # one GPU, renamed in CUDA 13
    if kind == "sm" or exact == "f":  # code of a family, also as PTX
        return of_major == major and of_minor <= minor
    return code <= gpu


def release(text: str) -> tuple[int, ...]:
    """Return the numbers of a version, to compare it with another."""
    return tuple(int(part) for part in re.findall(r"[0-9]+", text))
