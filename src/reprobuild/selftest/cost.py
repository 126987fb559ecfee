"""Cost of determinism, as measured by ``in_image/selftest --cost``. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import NoneType
from typing import Any

from ..errors import SelfTestError
from ..request.table import NUMBER, Table, TableError, Types, refused_as
from .report import GPU_TYPES, HEAD, SCHEMA, check_facts, gpu_contradiction, load

_REPORT: Types = {**HEAD, "costs": list, "seconds": NUMBER}
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
    """The cost of determinism, measured in the image of ``digest``."""

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
        with refused_as(SelfTestError, ""):
            return cls._of(load(data), digest)

    @classmethod
    def _of(cls, table: Table, digest: str) -> CostReport:
        report = table.fields(_REPORT)
        table.choice("mode", ("cost",))
        gpu = table.table("gpu").fields(GPU_TYPES)
        check_facts(table)
        tables = table.tables("costs")
        costs = tuple(Cost(**each.fields(_COST)) for each in tables)
        for each, cost in zip(tables, costs, strict=True):
            if (cost.ratio is None) is not bool(cost.reason):
                raise TableError(f"{each.place}: a ratio or a reason, not both or none")
        if contradiction := gpu_contradiction(table, [cost.device for cost in costs if not cost.reason]):
            raise contradiction
        return cls(
            digest=digest,
            program=table.sha256("program"),
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
