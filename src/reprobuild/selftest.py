"""Run the self-test inside an image and read what it reports.

The program itself is ``in_image/selftest.py``, whose docstring describes the report. An image that fails a
check is no error here: its report says so, and tag.py takes none that does. No report, or one that cannot be
read in full, is a `SelfTestError`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import NoneType
from typing import Any, Literal, Protocol, assert_never, get_args

from . import process
from .determinism import HOME, SITE_PREFIX
from .errors import HostError, SelfTestError

SCHEMA = 1
PROGRAM = (f"{SITE_PREFIX}/bin/python", f"{HOME}/selftest.py")

_SHA256 = re.compile(r"[0-9a-f]{64}")

Gpu = Literal["auto", "require", "off"]
Status = Literal["passed", "failed", "inconclusive", "not-run"]


class Runner(Protocol):
    """What an engine offers for a self-test: processes inside one image."""

    @property
    def digest(self) -> str:
        """The ``sha256:…`` of the image's manifest."""

    def run(self, argv: Sequence[str], *, timeout: float, gpu: bool) -> process.Completed:
        """Run in a container without network or capabilities, its root read-only, with /tmp and /dev/shm.

        Any exit status is returned. Raises `process.ProcessTimeout` after ``timeout`` seconds; nothing of the
        container is left then. ``gpu`` hands the host's GPUs in.
        """

    def gpu_missing(self) -> str | None:
        """Return None when a GPU can be handed in, else the reason why not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
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
    """How: ``setting``, ``within`` (a process), ``across`` (two processes), ``control``."""
    device: Literal["cpu", "cuda"]
    status: Status
    reason: str
    """Why it is not ``passed``; else empty."""
    detail: tuple[Difference, ...]
    results: Mapping[str, str]
    """The sha256 of each result's shape, type and bytes."""
    fingerprint: str | None
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
    versions: Mapping[str, Any]
    scope: Mapping[str, Any]
    """The machine kind (``cpu`` and ``gpu``) within which the fingerprints hold."""
    gpu_tested: bool
    gpu_reason: str
    """Why no GPU was tested; else empty."""
    checks: tuple[CheckResult, ...]
    seconds: float
    peak_memory_bytes: int

    @classmethod
    def parse(cls, data: bytes, *, digest: str) -> SelfTestReport:
        """Read the JSON of in_image/selftest.py. Raises `SelfTestError` that names the place in it."""
        if not data.strip():
            raise SelfTestError("the self-test wrote no report")
        try:
            table = json.loads(data)
        except (ValueError, RecursionError) as error:  # also bytes that are not UTF-8
            raise SelfTestError(f"the self-test's report is not JSON: {error}") from None
        if isinstance(table, dict) and table.get("schema") != SCHEMA:
            raise SelfTestError(f"self-test report: schema is {table.get('schema')!r}, not {SCHEMA}")
        report = _fields(table, "report", _REPORT)
        gpu = _fields(report["gpu"], "report.gpu", _GPU)
        checks = tuple(_check(item, f"report.checks[{i}]") for i, item in enumerate(report["checks"]))
        if not any(check.status in ("passed", "failed") for check in checks):
            raise SelfTestError("self-test report: no check was run")
        parsed = cls(
            digest=digest,
            versions=report["versions"],
            scope=report["scope"],
            gpu_tested=gpu["tested"],
            gpu_reason=gpu["reason"],
            checks=checks,
            seconds=report["seconds"],
            peak_memory_bytes=report["peak_memory_bytes"],
        )
        if report["verdict"] != ("passed" if parsed.passed else "failed"):
            raise SelfTestError(
                f"self-test report: the verdict {report['verdict']!r} is not that of its checks"
            )
        return parsed

    @property
    def passed(self) -> bool:
        """No check failed; one that is inconclusive or was not run does not count against the image."""
        return not self.failed

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        """The checks that failed."""
        return self._with("failed")

    def failures(self) -> list[str]:
        """Return a line for each failed check and one, indented, for each thing that differed."""
        lines = []
        for check in self.failed:
            lines.append(f"{check.label}: {check.reason}")
            lines += [f"  {d.what}: expected {d.expected}, got {d.got}" for d in check.detail]
        return lines

    def summary(self) -> list[tuple[str, str]]:
        """Return the rows of a table: what was checked, what was not and why, and on which machine.

        Labels are short, so that beside them a digest fits into 80 columns.
        """
        cpu: Mapping[str, Any] = self.scope.get("cpu") or {}
        machine = (
            f"{cpu.get('model', 'CPU')}, {cpu.get('capability', '?')}, {_count(cpu.get('threads'), 'thread')}"
        )
        rows = [("tested", f"{'passed' if self.passed else 'FAILED'} in {self.seconds:.1f} s on {machine}")]
        for title, status in (("checked", "passed"), ("failed", "failed")):
            names = ", ".join(check.label for check in self._with(status) if check.device == "cpu")
            rows += [(title, f"on CPU: {names}")] if names else []
        for title, status in (("unsure", "inconclusive"), ("not run", "not-run")):
            rows += [(title, f"{check.label}: {check.reason}") for check in self._with(status)]
        if not self.gpu_tested:
            return [*rows, ("GPU", f"not tested: {self.gpu_reason}")]
        gpu: Mapping[str, Any] = self.scope.get("gpu") or {}
        names = ", ".join(check.name for check in self._with("passed") if check.device == "cuda")
        return [*rows, ("GPU", f"tested on {gpu.get('name')}, driver {gpu.get('driver')}: {names}")]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as the program wrote it, with ``image``, the digest."""
        return {
            "image": self.digest,
            "schema": SCHEMA,
            "verdict": "passed" if self.passed else "failed",
            "versions": dict(self.versions),
            "scope": dict(self.scope),
            "gpu": {"tested": self.gpu_tested, "reason": self.gpu_reason},
            "checks": [asdict(check) for check in self.checks],
            "seconds": self.seconds,
            "peak_memory_bytes": self.peak_memory_bytes,
        }

    def _with(self, status: str) -> tuple[CheckResult, ...]:
        return tuple(check for check in self.checks if check.status == status)


def run_selftest(runner: Runner, *, gpu: Gpu, time_limit: float = 300) -> SelfTestReport:
    """Run the whole self-test in the runner's image; seconds count from the start of the container.

    ``auto`` tests a GPU where one can be handed in, ``require`` raises `HostError` where none can. Raises
    `SelfTestError` when the program hangs, crashes or reports nothing that can be read.
    """
    reason = _reason_without_gpu(runner, gpu)
    device = "cpu" if reason is not None else "cuda" if gpu == "require" else "auto"
    # The program stops itself a little earlier, and then names the check that hung.
    inner = max(time_limit - 15, time_limit * 0.8)
    argv = (*PROGRAM, "--json", "--device", device, "--time-limit", f"{inner:g}")
    try:
        done = runner.run(argv, timeout=time_limit, gpu=device != "cpu")
    except process.ProcessTimeout as timeout:
        raise SelfTestError(
            f"the self-test did not end within {timeout.seconds:g} s",
            hint="Run it again on a quieter machine; if it hangs again, the image is not fit for use.",
        ) from None
    report = _report(done, runner.digest)
    return report if reason is None else replace(report, gpu_reason=reason)


def _reason_without_gpu(runner: Runner, gpu: Gpu) -> str | None:
    match gpu:
        case "off":
            return "turned off by --gpu off"
        case "auto":
            return runner.gpu_missing()
        case "require":
            missing = runner.gpu_missing()
            if missing is not None:
                raise HostError(
                    f"a GPU is required for the self-test, but there is none: {missing}",
                    hint="Run it on a machine with a GPU, or with --gpu auto.",
                )
            return None
        case _:
            assert_never(gpu)


def _report(done: process.Completed, digest: str) -> SelfTestReport:
    """Read a finished program's report, which must fit its exit status (0 passed, 1 failed)."""
    code = done.returncode
    problem = "the self-test crashed"
    if code in (0, 1):
        try:
            report = SelfTestReport.parse(done.stdout, digest=digest)
        except SelfTestError as error:
            problem = error.message
        else:
            if report.passed == (code == 0):
                return report
            problem = "the self-test's report contradicts its exit status"
    # A signal is 128 + its number where a shell or a container engine reports it, else negative.
    hint = "Was it out of memory? The test needs about 1 GB." if code in (137, -9) else ""
    said = process.tail(done.stderr)
    raise SelfTestError(f"{problem} (exit status {code})" + (f"\n{said}" if said else ""), hint=hint)


_Types = Mapping[str, type | tuple[type, ...]]

_NUMBER = (int, float)
_GPU: _Types = {"tested": bool, "reason": str}
_DIFFERENCE: _Types = {"what": str, "expected": str, "got": str}
_REPORT: _Types = {
    "schema": int,
    "verdict": str,
    "versions": dict,
    "scope": dict,
    "gpu": dict,
    "checks": list,
    "seconds": _NUMBER,
    "peak_memory_bytes": int,
}
_CHECK: _Types = {
    "name": str,
    "proves": str,
    "compares": list,
    "device": str,
    "status": str,
    "reason": str,
    "detail": list,
    "results": dict,
    "fingerprint": (str, NoneType),
    "seconds": _NUMBER,
    "traceback": str,
}


def _fields(value: object, where: str, types: _Types) -> dict[str, Any]:
    """Return a table that has just these keys, each of its type; else raise `SelfTestError`."""
    if not isinstance(value, dict):
        raise SelfTestError(f"self-test {where}: not a table")
    for key in sorted(value.keys() ^ types.keys()):
        raise SelfTestError(f"self-test {where}.{key}: {'unknown key' if key in value else 'missing'}")
    for key, kind in types.items():
        if not isinstance(value[key], kind) or (isinstance(value[key], bool) and kind is not bool):
            raise SelfTestError(f"self-test {where}.{key}: {value[key]!r} is of the wrong type")
    return value


def _check(value: object, where: str) -> CheckResult:
    fields = _fields(value, where, _CHECK)
    for key, known in (("status", get_args(Status)), ("device", ("cpu", "cuda"))):
        if fields[key] not in known:
            raise SelfTestError(f"self-test {where}.{key}: {fields[key]!r} is none of {', '.join(known)}")
    hashes = [*fields["results"].values(), *([fields["fingerprint"]] if fields["results"] else [])]
    for text in hashes:
        if not isinstance(text, str) or not _SHA256.fullmatch(text):
            raise SelfTestError(f"self-test {where}: {text!r} is no sha256")
    detail = [_fields(item, f"{where}.detail[{i}]", _DIFFERENCE) for i, item in enumerate(fields["detail"])]
    return CheckResult(
        **{
            **fields,
            "compares": tuple(map(str, fields["compares"])),
            "detail": tuple(Difference(**item) for item in detail),
        }
    )


def _count(number: object, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
