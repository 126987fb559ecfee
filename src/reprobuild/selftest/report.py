"""Report of the self-test: JSON of ``in_image/selftest``, every field validated. Pure.

An image that fails a check is not an error here: its report says so, and tag.py refuses such a report. A
report that cannot be read in full is a `SelfTestError`.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from types import NoneType
from typing import Any, Literal, get_args

from ..errors import SelfTestError
from ..request.json_reader import hold_values
from ..request.table import NUMBER, JsonTable, Table, TableError, Types, refused_as, shown

SCHEMA = 3
LARGEST = 64 << 20
"""Bytes of a report; one with all values has two million."""

Status = Literal["passed", "failed", "inconclusive", "not-run"]
Mode = Literal["battery", "full", "prove", "part"]
"""``part``: some checks of the battery, which says nothing of an image as a whole."""
Scope = Literal["any", "kind"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Mismatch:
    """What differed, by name, and both values or their sha256."""

    what: str
    expected: str
    got: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckResult:
    """One check on one device."""

    name: str
    proves: str
    compares: tuple[str, ...]
    """How: ``setting``, ``within`` (a process), ``across`` (two processes), ``golden``, ``control``."""
    device: Literal["cpu", "cuda"]
    status: Status
    reason: str
    """Why it is not ``passed``; else empty."""
    detail: tuple[Mismatch, ...]
    results: Mapping[str, str]
    """The sha256 of each result's shape, type and bytes."""
    values: Mapping[str, Mapping[str, str]]
    """Some values of each float result: ``type``, as torch calls it, and ``data``, base64 of their bytes."""
    notes: tuple[str, ...]
    """What was seen beside the outcome."""
    scope: Scope
    """Where the results hold: on ``any`` machine with these versions, or on one ``kind`` of machine."""
    fingerprint: str | None
    """SHA-256 of all results; None without results."""
    calls: int
    """How often the operation was called, in both processes; 0 where nothing is compared."""
    rate: float | None
    """A deviation that befalls this share of calls is found with 99 %; None without calls."""
    seconds: float
    traceback: str

    @property
    def label(self) -> str:
        """The check's name, with its device where that is not the CPU."""
        return self.name if self.device == "cpu" else f"{self.name} ({self.device})"


@dataclass(frozen=True, kw_only=True, slots=True)
class SelfTestReport:
    """Results of the self-test in the image of ``digest``. Made by `parse`, which checks every field."""

    digest: str
    """Of the image; empty when the report does not say."""
    program: str
    """The sha256 of the program that made it, as 64 hex digits."""
    mode: Mode
    versions: Mapping[str, Any]
    scope: Mapping[str, Any]
    """The kind of machine, ``cpu`` and ``gpu``."""
    gpu_tested: bool
    gpu_reason: str
    """Why no GPU was tested; else empty."""
    checks: tuple[CheckResult, ...]
    seconds: float
    peak_memory_bytes: int

    @classmethod
    def parse(cls, data: bytes, *, digest: str) -> SelfTestReport:
        """Read the JSON of the program. Raises `SelfTestError` that names the place in it."""
        with refused_as(SelfTestError, ""):
            return cls._of(load(data), digest)

    @classmethod
    def parse_kept(cls, data: bytes) -> SelfTestReport:
        """Read what `to_dict` wrote, or the program itself, whose report names no image."""
        with refused_as(SelfTestError, ""):
            table = load(data)
            digest = "" if table.data.get("image", "") == "" else table.digest("image")
            rest = {key: value for key, value in table.data.items() if key != "image"}
            return cls._of(JsonTable(rest, table.place), digest)

    @classmethod
    def _of(cls, table: Table, digest: str) -> SelfTestReport:
        if table.has("mode"):  # first: a report of another kind has other keys
            table.choice("mode", get_args(Mode))
        report = table.fields(_REPORT)
        gpu = table.table("gpu").fields(GPU_TYPES)
        check_facts(table)
        checks = tuple(map(_check, table.tables("checks")))
        labels = Counter(check.label for check in checks)
        if twice := [label for label, number in labels.items() if number > 1]:
            raise table.bad("checks", f"the check {twice[0]} is there twice")
        if not any(check.status in ("passed", "failed") for check in checks):
            raise SelfTestError("self-test report: no check was run")
        if contradiction := gpu_contradiction(
            table, [check.device for check in checks if _has_result(check)]
        ):
            raise contradiction
        if gpu["tested"] and report["mode"] != "part" and "cuda" not in {check.device for check in checks}:
            raise table.table("gpu").bad("tested", "true, but the report has no check of a GPU", _CHANGED)
        parsed = cls(
            digest=digest,
            program=table.sha256("program"),
            mode=report["mode"],
            versions=report["versions"],
            scope=report["scope"],
            gpu_tested=gpu["tested"],
            gpu_reason=gpu["reason"],
            checks=checks,
            seconds=report["seconds"],
            peak_memory_bytes=report["peak_memory_bytes"],
        )
        if report["verdict"] != parsed.verdict:
            raise SelfTestError(
                f"self-test report: the verdict {shown(report['verdict'])} is not that of its checks"
            )
        return parsed

    @property
    def verdict(self) -> Literal["passed", "failed", "inconclusive"]:
        """A check that is inconclusive or was not run does not count against the image, but for --prove."""
        if self.failed:
            return "failed"
        return "inconclusive" if self.mode == "prove" and self.having("inconclusive") else "passed"

    @property
    def passed(self) -> bool:
        """Whether the verdict is ``passed``."""
        return self.verdict == "passed"

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        """The checks that failed."""
        return self.having("failed")

    def failures(self) -> list[str]:
        """Return a line for each failed check and one, indented, for each thing that differed."""
        lines = []
        for check in self.failed:
            lines.append(f"{check.label}: {check.reason}")
            lines += [f"  {d.what}: expected {d.expected}, got {d.got}" for d in check.detail]
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return the report as the program wrote it, with ``image``, the digest; `parse_kept` reads it."""
        return {
            "image": self.digest,
            "schema": SCHEMA,
            "program": self.program,
            "mode": self.mode,
            "verdict": self.verdict,
            "versions": dict(self.versions),
            "scope": dict(self.scope),
            "gpu": {"tested": self.gpu_tested, "reason": self.gpu_reason},
            "checks": [asdict(check) for check in self.checks],
            "seconds": self.seconds,
            "peak_memory_bytes": self.peak_memory_bytes,
        }

    def having(self, status: Status) -> tuple[CheckResult, ...]:
        """Return the checks of a status."""
        return tuple(check for check in self.checks if check.status == status)


def load(data: bytes) -> Table:
    """Read JSON of our schema. Raises `SelfTestError`."""
    if not data.strip():
        raise SelfTestError("the self-test wrote no report")
    if len(data) > LARGEST:
        raise SelfTestError(f"the self-test's report has more than {LARGEST:,} bytes")
    try:
        hold_values(data)
        table = json.loads(data)
    except (ValueError, RecursionError) as error:  # also bytes that are not UTF-8
        raise SelfTestError(f"the self-test's report is not JSON: {error}") from None
    if not isinstance(table, dict):
        raise SelfTestError("self-test report: not an object")
    if "schema" not in table:
        raise SelfTestError("not a self-test report: it names no schema")
    if table["schema"] != SCHEMA:
        raise SelfTestError(
            f"self-test report: schema is {table.get('schema')!r}, not {SCHEMA}",
            hint="another version of reprobuild wrote it; build the image again, or use that version",
        )
    return JsonTable(table, "self-test report")


GPU_TYPES: Types = {"tested": bool, "reason": str}
_CHANGED = "it was changed after the self-test wrote it; run the self-test again"
_PLAIN = (str, *NUMBER, bool, NoneType)
_VALUES: Types = {"type": str, "data": str}
_DIFFERENCE: Types = {"what": str, "expected": str, "got": str}
HEAD: Types = {"schema": int, "program": str, "mode": str, "versions": dict, "scope": dict, "gpu": dict}
"""Keys of every report that the program writes, with their types."""
_REPORT: Types = {**HEAD, "verdict": str, "checks": list, "seconds": NUMBER, "peak_memory_bytes": int}
_CHECK: Types = {
    "name": str,
    "proves": str,
    "compares": list,
    "device": str,
    "status": str,
    "reason": str,
    "detail": list,
    "results": dict,
    "values": dict,
    "notes": list,
    "scope": str,
    "fingerprint": (str, NoneType),
    "calls": int,
    "rate": (*NUMBER, NoneType),
    "seconds": NUMBER,
    "traceback": str,
}


def check_facts(report: Table) -> None:
    """Validate that ``versions``, and ``cpu`` and ``gpu`` of ``scope``, are tables of plain values or None.

    Which keys they have depends on the program that made the report. Raises `TableError`.
    """
    scope = report.table("scope", ("cpu", "gpu"))
    for table in (
        report.table("versions"),
        *(scope.table(key) for key in scope.data if scope.data[key] is not None),
    ):
        for key in table.data:
            table.hold(key, *_PLAIN)


def gpu_contradiction(report: Table, devices: Sequence[str]) -> TableError | None:
    """Return the error of a report with results of a GPU that it says was not tested, or does not describe.

    ``devices``: of each check with a result. No results at all of a GPU are no contradiction: a part of the
    battery may have none.
    """
    tested = report.table("gpu").value("tested", bool)
    described = report.table("scope").data.get("gpu") is not None
    if "cuda" in devices and not tested:
        return report.table("gpu").bad("tested", "false, but the report has results of a GPU", _CHANGED)
    if tested and not described:
        return report.table("scope").bad(
            "gpu", "missing, but the report says that a GPU was tested", _CHANGED
        )
    return None


def _has_result(check: CheckResult) -> bool:
    """Whether a check computed something: where a GPU is asked for and missing, all of its checks fail."""
    return check.status == "passed" or bool(check.results)


def _fingerprint(results: Mapping[str, object]) -> str | None:
    """Return what the program writes of a check's results (`in_image/selftest/parent.py`)."""
    whole = json.dumps(results, sort_keys=True).encode()
    return hashlib.sha256(whole).hexdigest() if results else None


def _check(table: Table) -> CheckResult:
    found = table.fields(_CHECK)
    for key, known in (("status", get_args(Status)), ("device", ("cpu", "cuda")), ("scope", get_args(Scope))):
        table.choice(key, known)
    results = table.table("results")
    for name in results.data:
        results.sha256(name)
    if results.data:
        table.sha256("fingerprint")
    if found["fingerprint"] != _fingerprint(results.data):
        raise table.bad(
            "fingerprint",
            f"that of {shown(found['name'])} is not the one of its results",
            _CHANGED,
        )
    values = table.table("values")
    for name in values.data:
        values.table(name).fields(_VALUES)
    return CheckResult(
        **{
            **found,
            "compares": tuple(table.texts("compares")),
            "notes": tuple(table.texts("notes")),
            "detail": tuple(Mismatch(**item.fields(_DIFFERENCE)) for item in table.tables("detail")),
        }
    )
