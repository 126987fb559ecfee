"""CUDA's packages in a file that is locked for the CPU."""

from __future__ import annotations

import re
from dataclasses import replace

from packaging.utils import canonicalize_name

from .common import Imported

_OF_TORCH = re.compile(
    r"nvidia-(cublas|cuda-(cupti|nvrtc|runtime)|cudnn|cufft|cufile|curand|cusolver|cusparse(lt)?|nccl|nvjitlink"
    r"|nvshmem|nvtx)(-cu\d+)?|cuda-toolkit"
)
"""What CUDA builds of torch require, and its builds for the CPU do not."""


def line_on_cuda_parts(imported: Imported) -> str:
    """Return a message that names what `without_cuda_parts` leaves out; empty if nothing."""
    if gone := _cuda_parts(imported):
        return f"{imported.origin}: left out, since torch for the CPU does not require it: {', '.join(gone)}"
    return ""


def without_cuda_parts(imported: Imported) -> Imported:
    """Leave out the loosened packages that the file has for a CUDA build of torch.

    One that another package requires still comes with that.
    """
    gone = _cuda_parts(imported)
    kept = tuple(each for each in imported.requirements if canonicalize_name(each.name) not in gone)
    return replace(imported, requirements=kept)


def _cuda_parts(imported: Imported) -> list[str]:
    loosened = {canonicalize_name(re.split(r"[^\w.-]", text.strip())[0]) for text in imported.loosened}
    return sorted(
        {
            name
            for each in imported.requirements
            if _OF_TORCH.fullmatch(name := canonicalize_name(each.name)) and name in loosened
        }
    )
