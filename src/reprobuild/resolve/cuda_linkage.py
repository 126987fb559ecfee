"""CUDA libraries that a wheel's shared objects need, read by range requests before it is locked.

Only objects that are small enough to be fetched for this are looked at: of packages that extend PyTorch, that
is the one with their operators. What an image has is held against all of them when it is built.
"""

from __future__ import annotations

import io
import re
import struct
import zipfile
from typing import TYPE_CHECKING

import requests

from ..in_image.selftest.linkage import CUDA_MAJOR, DT_NEEDED, dynamic_entries
from .wheel_metadata import UNREADABLE, open_wheel

if TYPE_CHECKING:
    from ..lock.packages import PythonPackage

LARGEST_WHEEL = 64 << 20
"""Bytes of a wheel that is looked into; those that extend PyTorch have 2 to 10 MB."""

_LARGEST_OBJECT = 12 << 20
_MOST_BYTES = 24 << 20
"""Bytes, inflated, of one object, and of all that are read of a wheel."""

CUDA = re.compile(r"lib(cudart|cublas|cublasLt|nvrtc|cudnn|cufft|nvjpeg|nccl|torch_cuda|c10_cuda)\b.*")


def cuda_libraries(package: PythonPackage, session: requests.Session) -> list[str]:
    """Return the CUDA libraries that a wheel needs but does not contain, sorted.

    Empty also where it cannot be told: the wheel is large, or its index answers no range requests.
    """
    wheel = package.wheel
    if wheel.size > LARGEST_WHEEL:
        return []
    try:
        with open_wheel(wheel.url, session) as archive:
            return sorted(_needed(archive))
    except (*UNREADABLE, requests.RequestException, ValueError, OSError):
        return []


def major_of(library: str) -> str | None:
    """Return the major version of CUDA that a library is of, where its name says it."""
    found = CUDA_MAJOR.fullmatch(library)
    return None if found is None else found[1]


def _needed(archive: zipfile.ZipFile) -> set[str]:
    objects = [info for info in archive.infolist() if re.search(r"\.so(\.[0-9.]+)?$", info.filename)]
    brought = {info.filename.rpartition("/")[2] for info in objects}
    needed: set[str] = set()
    left = _MOST_BYTES
    for info in sorted(objects, key=lambda info: info.file_size):
        left -= info.file_size
        if info.file_size > _LARGEST_OBJECT or left < 0:
            break
        try:
            entries = dynamic_entries(io.BytesIO(archive.read(info))) or []
        except (struct.error, OverflowError, ValueError):
            continue
        needed |= {text for tag, text in entries if tag == DT_NEEDED and CUDA.fullmatch(text)}
    return needed - brought
