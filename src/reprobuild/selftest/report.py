"""What the self-test reports: read from the JSON of ``in_image/selftest``, every field checked. Pure.

An image that fails a check is not an error here: its report says so, and tag.py refuses such a report. A
report that cannot be read in full is a `SelfTestError`.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import NoneType
from typing import Any, Literal, get_args

from ..errors import SelfTestError

SCHEMA = 3
LARGEST = 64 << 20
"""Bytes of a report; one with all values has two million."""

_SHA256 = re.compile(r"[0-9a-f]{64}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")

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
    """The sha256 over all results; None where there is none."""
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
    """What the self-test saw in the image of ``digest``. Make one with `parse`, which checks every field."""

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
        return cls._of(load(data), digest)

    @classmethod
    def parse_kept(cls, data: bytes) -> SelfTestReport:
        """Read what `to_dict` wrote, or the program itself, whose report names no image."""
        table = load(data)
        digest = table.pop("image", "")
        if not isinstance(digest, str) or (digest and not _DIGEST.fullmatch(digest)):
            raise SelfTestError(f"self-test report.image: {digest!r} is not a digest")
        return cls._of(table, digest)

    @classmethod
    def _of(cls, table: Mapping[str, Any], digest: str) -> SelfTestReport:
        if table.get("mode", "battery") not in get_args(Mode):
            raise SelfTestError(
                f"self-test report.mode: {table['mode']!r} is none of {', '.join(get_args(Mode))}"
            )
        report = fields(table, "report", _REPORT)
        gpu = fields(report["gpu"], "report.gpu", GPU_TYPES)
        check_facts(report)
        checks = tuple(_check(item, f"report.checks[{i}]") for i, item in enumerate(report["checks"]))
        if not any(check.status in ("passed", "failed") for check in checks):
            raise SelfTestError("self-test report: no check was run")
        parsed = cls(
            digest=digest,
            program=program_of(report),
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
                f"self-test report: the verdict {report['verdict']!r} is not that of its checks"
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


def load(data: bytes) -> dict[str, Any]:
    """Read JSON of our schema. Raises `SelfTestError`."""
    if not data.strip():
        raise SelfTestError("the self-test wrote no report")
    if len(data) > LARGEST:
        raise SelfTestError(f"the self-test's report has more than {LARGEST:,} bytes")
    try:
        table = json.loads(data)
    except (ValueError, RecursionError) as error:  # also bytes that are not UTF-8
        raise SelfTestError(f"the self-test's report is not JSON: {error}") from None
    if not isinstance(table, dict):
        raise SelfTestError("self-test report: not a table")
    if "schema" not in table:
        raise SelfTestError("not a self-test report: it names no schema")
    if table["schema"] != SCHEMA:
        raise SelfTestError(
            f"self-test report: schema is {table.get('schema')!r}, not {SCHEMA}",
            hint="another version of reprobuild wrote it; build the image again, or use that version",
        )
    return table


Types = Mapping[str, type | tuple[type, ...]]

NUMBER = (int, float)
GPU_TYPES: Types = {"tested": bool, "reason": str}
_VALUES: Types = {"type": str, "data": str}
_DIFFERENCE: Types = {"what": str, "expected": str, "got": str}
_REPORT: Types = {
    "schema": int,
    "program": str,
    "mode": str,
    "verdict": str,
    "versions": dict,
    "scope": dict,
    "gpu": dict,
    "checks": list,
    "seconds": NUMBER,
    "peak_memory_bytes": int,
}
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


def fields(value: object, where: str, types: Types) -> dict[str, Any]:
    """Return a table that has just these keys, each of its type; else raise `SelfTestError`."""
    if not isinstance(value, dict):
        raise SelfTestError(f"self-test {where}: not a table")
    for key in sorted(value.keys() ^ types.keys()):
        raise SelfTestError(f"self-test {where}.{key}: {'unknown key' if key in value else 'missing'}")
    for key, kind in types.items():
        if not isinstance(value[key], kind) or (isinstance(value[key], bool) and kind is not bool):
            raise SelfTestError(f"self-test {where}.{key}: {_shown(value[key])} is of the wrong type")
        if isinstance(value[key], int | float):
            _check_number(value[key], f"{where}.{key}")
    return value


def check_facts(report: Mapping[str, Any]) -> None:
    """Hold ``versions``, and ``cpu`` and ``gpu`` of ``scope``, to tables of plain values or nothing.

    Which keys they have depends on the program that made the report. Raises `SelfTestError`.
    """
    tables = {"versions": report["versions"]}
    for key, value in report["scope"].items():
        if key not in ("cpu", "gpu"):
            raise SelfTestError(f"self-test report.scope.{key}: unknown key")
        tables |= {} if value is None else {f"scope.{key}": value}
    for where, table in tables.items():
        if not isinstance(table, dict):
            raise SelfTestError(f"self-test report.{where}: {_shown(table)} is of the wrong type")
        for key, value in table.items():
            if not isinstance(value, str | int | float | NoneType):
                raise SelfTestError(f"self-test report.{where}.{key}: {_shown(value)} is of the wrong type")
            if isinstance(value, int | float):
                _check_number(value, f"report.{where}.{key}")


def _check_number(value: float, where: str) -> None:
    if abs(value) >= 1 << 63 or math.isnan(value):
        raise SelfTestError(f"self-test {where}: {_shown(value)} is out of range")


def _texts(values: list[Any], where: str) -> tuple[str, ...]:
    for value in values:
        if not isinstance(value, str):
            raise SelfTestError(f"self-test {where}: {_shown(value)} is of the wrong type")
    return tuple(values)


def _shown(value: object) -> str:
    return textwrap.shorten(repr(value), 80)


def program_of(report: Mapping[str, Any]) -> str:
    """Return the hash of the program that made a report. Raises `SelfTestError` where it is none."""
    found = str(report["program"])
    if not _SHA256.fullmatch(found):
        raise SelfTestError(f"self-test report.program: {found!r} is not a sha256")
    return found


def _check(value: object, where: str) -> CheckResult:
    found = fields(value, where, _CHECK)
    choices = ("status", get_args(Status)), ("device", ("cpu", "cuda")), ("scope", get_args(Scope))
    for key, known in choices:
        if found[key] not in known:
            raise SelfTestError(f"self-test {where}.{key}: {found[key]!r} is none of {', '.join(known)}")
    hashes = [*found["results"].values(), *([found["fingerprint"]] if found["results"] else [])]
    for text in hashes:
        if not isinstance(text, str) or not _SHA256.fullmatch(text):
            raise SelfTestError(f"self-test {where}: {text!r} is not a SHA-256")
    for name, values in found["values"].items():
        fields(values, f"{where}.values.{name}", _VALUES)
    detail = [fields(item, f"{where}.detail[{i}]", _DIFFERENCE) for i, item in enumerate(found["detail"])]
    return CheckResult(
        **{
            **found,
            "compares": _texts(found["compares"], f"{where}.compares"),
            "notes": _texts(found["notes"], f"{where}.notes"),
            "detail": tuple(Mismatch(**item) for item in detail),
        }
    )
