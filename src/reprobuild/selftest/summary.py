"""Summary of a self-test report as the rows of a table. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from .report import SelfTestReport, Status


def summary(report: SelfTestReport, *, power: bool) -> list[tuple[str, str]]:
    """Return the rows of a table: what was checked, what was not and why, and on which machine.

    ``power`` adds which deviations the number of calls finds.

    Labels are short, so that beside them a digest fits into 80 columns.
    """
    cpu: Mapping[str, Any] = report.scope.get("cpu") or {}
    machine = (
        f"{cpu.get('model', 'CPU')}, {cpu.get('capability', '?')}, {_count(cpu.get('threads'), 'thread')}"
    )
    verdict = "FAILED" if report.failed else report.verdict
    rows = [
        (
            "proved" if report.mode == "prove" else "tested",
            f"{verdict} in {report.seconds:.1f} s on {machine}",
        )
    ]
    ran: tuple[tuple[str, Status], ...] = ("checked", "passed"), ("failed", "failed")
    for title, status in ran:
        names = ", ".join(check.label for check in report.having(status) if check.device == "cpu")
        rows += [(title, f"on CPU: {names}")] if names else []
    rows += unproven(report)
    rows += [
        ("batches", f"on {'CPU' if check.device == 'cpu' else 'GPU'}: {line}")
        for check in report.having("passed")
        if check.name == "batches"
        for line in check.notes
    ]
    rows += [("power", text)] if power and (text := _power(report)) else []
    if not report.gpu_tested:
        return [*rows, *untested_gpu(report)]
    gpu: Mapping[str, Any] = report.scope.get("gpu") or {}
    names = ", ".join(check.name for check in report.having("passed") if check.device == "cuda")
    return [*rows, ("GPU", f"tested on {gpu.get('name')}, driver {gpu.get('driver')}: {names}")]


def tally(report: SelfTestReport) -> str:
    """Return the verdict and how many of the checks passed."""
    return f"{report.verdict}, {len(report.having('passed'))} of {_count(len(report.checks), 'check')}"


def coverage(report: SelfTestReport) -> str:
    """Return how many of the checks ran, how many did not, and whether a GPU was tested."""
    lost = len(report.having("not-run"))
    ran = f"{len(report.checks) - lost} of {_count(len(report.checks), 'check')} ran"
    ran += f", {lost} did not" if lost else ""
    return f"{ran}; {'a' if report.gpu_tested else 'no'} GPU was tested"


def facts(report: SelfTestReport) -> dict[str, Any]:
    """Return a report's verdict and checks for JSON."""
    return {
        "verdict": report.verdict,
        "gpu_tested": report.gpu_tested,
        "checks": [{"name": c.label, "status": c.status, "reason": c.reason} for c in report.checks],
    }


def unproven(report: SelfTestReport) -> list[tuple[str, str]]:
    """Return rows for the checks that are inconclusive or were not run, with their reasons."""
    rows = []
    rest: tuple[tuple[str, Status], ...] = ("unsure", "inconclusive"), ("not run", "not-run")
    for title, status in rest:
        reasons: dict[str, list[str]] = {}
        for check in report.having(status):
            reasons.setdefault(check.reason, []).append(check.label)
        rows += [(title, f"{', '.join(labels)}: {reason}") for reason, labels in reasons.items()]
    return rows


def untested_gpu(report: SelfTestReport) -> list[tuple[str, str]]:
    """Return the row that no GPU was tested, and why; none where one was."""
    return [] if report.gpu_tested else [("GPU", f"not tested: {report.gpu_reason}")]


def _power(report: SelfTestReport) -> str:
    """Return how often operations were called, and what deviations that finds."""
    counts = Counter((check.calls, check.rate) for check in report.checks if check.rate)
    return "; ".join(
        f"{calls} calls in {_count(number, 'check')} catch a deviation in 1 of {1 / rate:.1f} calls "
        "with 99 % confidence"
        for (calls, rate), number in sorted(counts.items(), reverse=True)
        if rate
    )


def _count(number: object, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
