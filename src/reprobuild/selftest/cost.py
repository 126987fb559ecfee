"""What determinism costs, as ``in_image/selftest --cost`` measured it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import NoneType
from typing import Any

from ..errors import SelfTestError
from .report import GPU_TYPES, NUMBER, SCHEMA, Types, check_facts, fields, load, program_of

_REPORT: Types = {
    "schema": int,
    "program": str,
    "mode": str,
    "versions": dict,
    "scope": dict,
    "gpu": dict,
    "costs": list,
    "seconds": NUMBER,
}
_MAYBE = (*NUMBER, NoneType)
_COST: Types = {
    "name": str,
    "device": str,
    "on": _MAYBE,
    "off": _MAYBE,
    "ratio": _MAYBE,
    "rounds": int,
    "reason": str,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """One operation on one device; the numbers are None when it was not measured, and ``reason`` says why."""

    name: str
    device: str
    on: float | None
    """Seconds of the fastest round with determinism on."""
    off: float | None
    ratio: float | None
    """``on`` / ``off``, from turns within one run."""
    rounds: int
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CostReport:
    """What was measured in the image of ``digest``."""

    digest: str
    program: str
    """The sha256 of the program that measured."""
    versions: Mapping[str, Any]
    scope: Mapping[str, Any]
    gpu_tested: bool
    gpu_reason: str
    costs: tuple[Cost, ...]
    seconds: float

    @classmethod
    def parse(cls, data: bytes, *, digest: str) -> CostReport:
        """Read the JSON of the program. Raises `SelfTestError` that names the place in it."""
        report = fields(load(data), "report", _REPORT)
        if report["mode"] != "cost":
            raise SelfTestError(f"self-test report.mode: {report['mode']!r} is not cost")
        gpu = fields(report["gpu"], "report.gpu", GPU_TYPES)
        check_facts(report)
        costs = tuple(
            Cost(**fields(item, f"report.costs[{i}]", _COST)) for i, item in enumerate(report["costs"])
        )
        for index, cost in enumerate(costs):
            if (cost.ratio is None) is not bool(cost.reason):
                raise SelfTestError(f"self-test report.costs[{index}]: a ratio or a reason, not both or none")
        return cls(
            digest=digest,
            program=program_of(report),
            versions=report["versions"],
            scope=report["scope"],
            gpu_tested=gpu["tested"],
            gpu_reason=gpu["reason"],
            costs=costs,
            seconds=report["seconds"],
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report as the program wrote it, with ``image``, the digest."""
        return {
            "image": self.digest,
            "schema": SCHEMA,
            "program": self.program,
            "mode": "cost",
            "versions": dict(self.versions),
            "scope": dict(self.scope),
            "gpu": {"tested": self.gpu_tested, "reason": self.gpu_reason},
            "costs": [asdict(cost) for cost in self.costs],
            "seconds": self.seconds,
        }
