"""The versions and the kind of machine that results belong to."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import warnings
from pathlib import Path
from typing import Any

from .libraries import np, torch
from .nvml import Management, bus_of, shared_by_mps

SCHEMA = 3
NOT_SEEN = "no GPU is visible here, or its driver is too old for this torch"


def gpu_missing() -> str:
    """Return why CUDA cannot be tested here, or nothing when it can."""
    if torch.version.cuda is None:
        return "this build of torch has no CUDA"
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        if torch.cuda.is_available():
            return ""
    # Where the driver is too old, or broken, torch warns of it; of a GPU that is hidden it says nothing.
    reasons = [str(each.message).partition(" (Triggered internally")[0] for each in said]
    reason = "; ".join(dict.fromkeys(reasons))[:500] or NOT_SEEN
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return reason if visible is None else f"{reason} (CUDA_VISIBLE_DEVICES is {visible[:100]!r})"


def cpu_capability() -> str:
    """Return for which processors torch has chosen its kernels: ``AVX2``, ``DEFAULT``."""
    if hasattr(torch.backends, "cpu"):
        return str(torch.backends.cpu.get_cpu_capability())
    said = re.search(r"CPU capability usage: (\w+)", torch.__config__.show())  # torch 2.0
    return "unknown" if said is None else said[1]


def cpu_scope() -> dict[str, Any]:
    """Return what decides the bits of results on the CPU, beside the versions."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8").split("\n\n")[0]
    except OSError:
        text = ""
    info = dict(re.findall(r"^([^\t\n]+?)\s*: *(.*)$", text, re.MULTILINE))
    kind = [info.get(key, "?") for key in ("cpu family", "model", "stepping")]
    return {
        "model": info.get("model name", platform.machine()),
        "kind": "family {} model {} stepping {}".format(*kind),
        "machine": platform.machine(),
        "capability": cpu_capability(),
        "threads": torch.get_num_threads(),
        "cores": len(os.sched_getaffinity(0)),
        "mkl_cbwr": os.environ.get("MKL_CBWR"),
        "onednn_max_cpu_isa": os.environ.get("ONEDNN_MAX_CPU_ISA"),
    }


def gpu_of(device: int, management: Management) -> dict[str, Any]:
    """Return what one GPU is, and how it is set up."""
    properties = torch.cuda.get_device_properties(device)
    return {
        "name": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "sm_count": properties.multi_processor_count,
        "memory_bytes": properties.total_memory,
        **management.settings(bus_of(device)),
    }


def nccl_version() -> str | None:
    """Return the version of NCCL, or nothing where this torch has none."""
    try:
        found = torch.cuda.nccl.version()
    except (AttributeError, RuntimeError):
        return None
    return ".".join(map(str, found)) if isinstance(found, tuple) else str(found)


def gpu_scope() -> dict[str, Any]:
    """Return what decides the bits of results on the GPUs, beside the versions.

    Of the first GPU fact by fact, since the checks run there; of all in ``devices``. Null: not known.
    """
    management = Management()
    gpus = [gpu_of(number, management) for number in range(torch.cuda.device_count())]
    driver = None
    with contextlib.suppress(OSError):  # WSL 2 has no such module
        driver = Path("/sys/module/nvidia/version").read_text("utf-8").strip()
    return {
        **gpus[0],
        "devices": "; ".join(", ".join(f"{key} {value}" for key, value in gpu.items()) for gpu in gpus),
        "driver": driver or management.driver(),
        "mps": shared_by_mps(),
        "nccl": nccl_version(),
        # What decides how cuBLASLt splits a product; its default depends on the GPU (pytorch/pytorch#182669).
        "cublas_workspace": os.environ.get("CUBLAS_WORKSPACE_CONFIG"),
        "cublaslt_workspace": os.environ.get("CUBLASLT_WORKSPACE_SIZE"),
        "cublaslt_unified": os.environ.get("TORCH_CUBLASLT_UNIFIED_WORKSPACE"),
        "nccl_algo": os.environ.get("NCCL_ALGO"),
        "nccl_proto": os.environ.get("NCCL_PROTO"),
    }


def facts(gpu_reason: str) -> dict[str, Any]:
    """Return versions, scope and gpu of a report; ``gpu_reason``: why no GPU is tested, or nothing."""
    return {
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
            "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version() if torch.version.cuda else None,
        },
        "scope": {"cpu": cpu_scope(), "gpu": None if gpu_reason else gpu_scope()},
        "gpu": {"tested": not gpu_reason, "reason": gpu_reason},
    }
