"""Reports of the self-test as its program prints them, and a runner whose container is a plain process."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reprobuild.host import process
from reprobuild.selftest.cost import CostReport
from reprobuild.selftest.report import SCHEMA, SelfTestReport

DIGEST = "sha256:" + "a" * 64
HASH = "b" * 64


@dataclass
class Script:
    """A runner whose container is a Python process with other code in it."""

    code: str
    missing: str | None = "there is no GPU here"
    digest: str = DIGEST
    where: str | None = "here"
    calls: list[tuple[tuple[str, ...], bool]] = field(default_factory=list)

    def run(self, argv: Sequence[str], *, timeout: float, gpu: bool) -> process.Completed:
        self.calls.append((tuple(argv), gpu))
        return process.run([sys.executable, "-c", self.code], timeout=timeout, check=False)

    def gpu_missing(self) -> str | None:
        return self.missing

    def machine(self) -> str | None:
        return self.where


def fingerprint(results: Mapping[str, str]) -> str | None:
    """What the program writes of a check's results."""
    whole = json.dumps(results, sort_keys=True).encode()
    return hashlib.sha256(whole).hexdigest() if results else None


def a_check(**changes: Any) -> dict[str, Any]:
    results = changes.get("results", {"output": HASH})
    return {
        "name": "conv2d",
        "proves": "A convolution repeats",
        "compares": ["within", "across"],
        "device": "cpu",
        "status": "passed",
        "reason": "",
        "detail": [],
        "results": results,
        "values": {"output": {"type": "float32", "data": "AACAPw=="}},
        "notes": [],
        "scope": "kind",
        "fingerprint": fingerprint(results),
        "calls": 4,
        "rate": 0.6838,
        "seconds": 0.25,
        "traceback": "",
        **changes,
    }


def a_report(*checks: dict[str, Any], **changes: Any) -> dict[str, Any]:
    listed = list(checks) or [a_check()]
    tested = any(check["device"] == "cuda" and check["results"] for check in listed)
    return {
        "schema": SCHEMA,
        "program": HASH,
        "mode": "battery",
        "verdict": "failed" if any(check["status"] == "failed" for check in listed) else "passed",
        "versions": {"torch": "2.4.1+cu121", "cuda": "12.1"},
        "scope": {
            "cpu": {"model": "Some CPU", "capability": "AVX2", "threads": 1},
            "gpu": {"name": "Some GPU"} if tested else None,
        },
        "gpu": {"tested": tested, "reason": "" if tested else "asked for the CPU only"},
        "checks": listed,
        "seconds": 6.5,
        "peak_memory_bytes": 400_000_000,
        **changes,
    }


FAILED = a_check(
    status="failed",
    reason="two processes differ",
    detail=[{"what": "output", "expected": "c" * 64, "got": "d" * 64}],
)


def printing(table: object, status: int = 0) -> str:
    return f"import sys; print({json.dumps(table)!r}); sys.exit({status})"


def parse_report(table: object) -> SelfTestReport:
    return SelfTestReport.parse(json.dumps(table).encode(), digest=DIGEST)


OTHER = "c" * 64
CPU = {
    "model": "Some CPU",
    "kind": "family 25 model 17 stepping 1",
    "machine": "x86_64",
    "capability": "AVX2",
    "threads": 1,
    "mkl_cbwr": "AUTO",
    "onednn_max_cpu_isa": None,
}
GPU = {"name": "Some GPU", "sm_count": 108, "driver": "550.54"}
VERSIONS = {"python": "3.11.2", "torch": "2.4.1+cu121", "numpy": "1.26.4", "cuda": "12.1", "cudnn": 90100}


def floats(*values: float) -> dict[str, str]:
    return {"type": "float32", "data": base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()}


def report(
    *checks: dict[str, Any], cpu: Any = None, gpu: Any = None, versions: Any = None, **changes: Any
) -> SelfTestReport:
    scope = {"cpu": {**CPU, **(cpu or {})}, "gpu": {**GPU, **(gpu or {})}}
    changes |= {"scope": scope, "versions": {**VERSIONS, **(versions or {})}}
    return parse_report(a_report(*checks, **changes))


def with_bits(bits: str, **changes: Any) -> dict[str, Any]:
    return a_check(results={"output": bits}, **changes)


def a_cost(**changes: Any) -> dict[str, Any]:
    return {
        "name": "index_put",
        "device": "cpu",
        "on": 0.004,
        "off": 0.002,
        "ratio": 2.0,
        "rounds": 70,
        "reason": "",
        **changes,
    }


NOT_MEASURED = a_cost(name="sort", on=None, off=None, ratio=None, rounds=0, reason="RuntimeError: no")


def costs(*found: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "program": HASH,
        "mode": "cost",
        "versions": {"torch": "2.4.1+cu121"},
        "scope": {"cpu": {}, "gpu": None},
        "gpu": {"tested": False, "reason": "none"},
        "costs": list(found) or [a_cost(), NOT_MEASURED],
        "seconds": 9.5,
        **changes,
    }


def parse_cost(table: object) -> CostReport:
    return CostReport.parse(json.dumps(table).encode(), digest=DIGEST)
