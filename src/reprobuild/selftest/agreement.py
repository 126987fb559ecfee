"""Compare two self-test reports, where they are comparable. Pure.

Results of scope ``any`` depend on versions and architecture alone. All others belong to a kind of machine:
bits of two kinds are not comparable; what is reported of them is how far apart their values are. The programs
of two releases of reprobuild compute different results, so those are not comparable either.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .distance import largest_ulp
from .report import CheckResult, SelfTestReport

State = Literal["equal", "differs", "not comparable"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Agreement:
    """The results of two reports for one check on one device."""

    name: str
    device: str
    state: State
    reason: str
    """Why it is not comparable; else empty."""
    results: tuple[str, ...]
    """The results whose bits differ, also where they are not comparable."""
    ulp: int | None
    """The largest difference of the values kept, in units in the last place; None when none are kept."""


def compare(first: SelfTestReport, second: SelfTestReport) -> tuple[Agreement, ...]:
    """Compare two reports, check by check where both have results, in the first one's order."""
    others = {(check.name, check.device): check for check in second.checks if check.results}
    return tuple(
        _agreement(first, mine, second, others[mine.name, mine.device])
        for mine in first.checks
        if mine.results and (mine.name, mine.device) in others
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Unmatched:
    """A check that has results in one of two reports alone, so that nothing is compared."""

    name: str
    device: str
    first: bool
    """Whether the first report has them."""


def unmatched(first: SelfTestReport, second: SelfTestReport) -> tuple[Unmatched, ...]:
    """Return the checks that `compare` leaves out, those of the first report before the others."""
    one, other = (
        {(check.name, check.device): None for check in report.checks if check.results}
        for report in (first, second)
    )
    return tuple(
        Unmatched(name=name, device=device, first=(name, device) in one)
        for name, device in (
            *(key for key in one if key not in other),
            *(key for key in other if key not in one),
        )
    )


def _agreement(
    first: SelfTestReport, mine: CheckResult, second: SelfTestReport, other: CheckResult
) -> Agreement:
    a, b = kind(first, mine), kind(second, other)
    reason = "; ".join(
        f"another {key}"
        if key == PROGRAM
        else f"{key}: {' and '.join(dict.fromkeys((str(a.get(key)), str(b.get(key)))))}"
        for key in {**a, **b}
        if a.get(key) != b.get(key) or a.get(key) == UNKNOWN
    )
    results = differing(mine, other)
    state: State = "not comparable" if reason else "differs" if results else "equal"
    return Agreement(
        name=mine.name,
        device=mine.device,
        state=state,
        reason=reason,
        results=results,
        ulp=distance(mine, other),
    )


PROGRAM = "self-test program"
"""What `kind` calls the program: another one computes other results."""
UNKNOWN = "not known"
"""Marks an unknown fact in `kind`: machines with unknown facts are never comparable."""


def kind(report: SelfTestReport, check: CheckResult) -> Mapping[str, str]:
    """Return all that the bits of a check's results may depend on; equal kinds must give equal bits."""
    return {PROGRAM: report.program, **_machine(report, check)}


def _machine(report: SelfTestReport, check: CheckResult) -> Mapping[str, str]:
    versions, cpu = report.versions, report.scope.get("cpu") or {}
    torch = str(versions.get("torch"))
    if check.scope == "any":
        return {
            "torch": torch.partition("+")[0],
            "NumPy": str(versions.get("numpy")),
            "Python": ".".join(str(versions.get("python")).split(".")[:2]),
            "architecture": str(cpu.get("machine")),
        }
    if check.device == "cuda":
        gpu: Mapping[str, Any] = report.scope.get("gpu") or {}
        return {
            "torch": torch,
            "CUDA": str(versions.get("cuda")),
            "cuDNN": str(versions.get("cudnn")),
            "architecture": str(cpu.get("machine")),
            "GPU": str(gpu.get("name") or UNKNOWN),
            "multiprocessors": str(gpu.get("sm_count") or UNKNOWN),
            **{name: _setting(gpu, key) for name, key in _SETTINGS.items()},
            "cuBLAS workspace": str(gpu.get("cublas_workspace")),
            "cuBLASLt workspace": f"{gpu.get('cublaslt_workspace')}, unified: {gpu.get('cublaslt_unified')}",
            **(_nccl(gpu) if check.name in _BY_NCCL else {}),
            **({"GPUs": _setting(gpu, "devices")} if check.name in _OF_ALL_GPUS else {}),
        }
    return {
        "torch": torch,
        "NumPy": str(versions.get("numpy")),
        "CPU": f"{cpu.get('model')} ({cpu.get('kind')})",
        "capability": str(cpu.get("capability")),
        "threads": str(cpu.get("threads")),
        "MKL_CBWR": str(cpu.get("mkl_cbwr")),
        "ONEDNN_MAX_CPU_ISA": str(cpu.get("onednn_max_cpu_isa")),
    }


_SETTINGS = {
    "driver": "driver",
    "ECC": "ecc",
    "MIG": "mig",
    "MPS": "mps",
    "highest clock in MHz": "max_sm_mhz",
    "power limit in mW": "power_limit_mw",
}
_BY_NCCL = ("ranks-nccl", "sums-nccl")
_OF_ALL_GPUS = (*_BY_NCCL, "torch-seed", "generator-state")
"""The checks that run on every GPU, not on the first alone."""


def _setting(gpu: Mapping[str, Any], key: str) -> str:
    """Return a fact about a GPU, or that the self-test of that version did not record it."""
    value = gpu.get(key, "not asked for")
    return UNKNOWN if value is None else str(value)


def _nccl(gpu: Mapping[str, Any]) -> Mapping[str, str]:
    return {
        "NCCL": _setting(gpu, "nccl"),
        "NCCL_ALGO": str(gpu.get("nccl_algo")),
        "NCCL_PROTO": str(gpu.get("nccl_proto")),
    }


def differing(first: CheckResult, second: CheckResult) -> tuple[str, ...]:
    """Return the names of the results whose bits differ, or that only one of the two has."""
    names = {**first.results, **second.results}
    return tuple(name for name in names if first.results.get(name) != second.results.get(name))


def distance(first: CheckResult, second: CheckResult) -> int | None:
    """Return the largest difference of the values kept, in units in the last place."""
    found = [ulp(first.values[name], second.values[name]) for name in first.values if name in second.values]
    return max((each for each in found if each is not None), default=None)


def ulp(first: Mapping[str, str], second: Mapping[str, str]) -> int | None:
    """Return the largest difference of two lists of values as the report holds them.

    A unit in the last place is a step from one value of the type to the next. None when they are of another
    type or number, or cannot be read.
    """
    kind = first["type"]
    if kind != second["type"]:
        return None
    try:
        one, other = (base64.b64decode(each["data"], validate=True) for each in (first, second))
    except (binascii.Error, ValueError):
        return None
    return largest_ulp(one, other, kind) if one else None
