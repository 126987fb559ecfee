"""Compare the reports of many machines, and find those that deviate from their own kind. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from .agreement import UNKNOWN, differing, distance, kind
from .report import CheckResult, SelfTestReport

State = Literal["agrees", "deviates", "alone", "no result"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """One report, named by its file."""

    name: str
    report: SelfTestReport

    @property
    def cpu(self) -> str:
        """The CPU in words."""
        cpu: Mapping[str, Any] = self.report.scope.get("cpu") or {}
        return f"{cpu.get('model')}, {cpu.get('capability')}, threads: {cpu.get('threads')}"

    @property
    def gpu(self) -> str:
        """The GPU in words; empty when none was tested."""
        gpu: Mapping[str, Any] = self.report.scope.get("gpu") or {}
        return f"{gpu.get('name')}, driver {gpu.get('driver')}" if gpu else ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """The result of one machine for one check."""

    machine: str
    state: State
    bits: str
    """Within a row, the same letter for the same bits; empty without a result."""
    reason: str
    """Reason for a missing result; otherwise empty."""
    ulp: int | None
    """The largest distance from the first machine with a result, in units in the last place."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One check on one device, over all machines."""

    name: str
    device: str
    scope: str
    cells: tuple[Cell, ...]

    @property
    def label(self) -> str:
        """The check's name, with its device where that is not the CPU."""
        return self.name if self.device == "cpu" else f"{self.name} ({self.device})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Deviation:
    """A machine whose bits differ from those of most of its kind; without a majority, from another's."""

    machine: str
    check: str
    device: str
    others: tuple[str, ...]
    """The machines of its kind that it was compared with."""
    results: tuple[str, ...]
    ulp: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Fleet:
    """The table of checks by machines."""

    machines: tuple[Machine, ...]
    rows: tuple[Row, ...]
    deviations: tuple[Deviation, ...]

    @property
    def programs(self) -> Mapping[str, tuple[str, ...]]:
        """The machines by the self-test program of their reports; only those of one are compared."""
        found: dict[str, tuple[str, ...]] = {}
        for machine in self.machines:
            found[machine.report.program] = (*found.get(machine.report.program, ()), machine.name)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return it as a JSON value."""
        return {
            "machines": [
                {
                    "name": machine.name,
                    "image": machine.report.digest,
                    "program": machine.report.program,
                    "verdict": machine.report.verdict,
                    "versions": dict(machine.report.versions),
                    "scope": dict(machine.report.scope),
                }
                for machine in self.machines
            ],
            "checks": [asdict(row) for row in self.rows],
            "deviations": [asdict(deviation) for deviation in self.deviations],
        }


def fleet(machines: Sequence[Machine]) -> Fleet:
    """Compare each machine with those of its kind, check by check; names must be unique."""
    rows, deviations = [], list[Deviation]()
    keys = dict.fromkeys(
        (check.name, check.device) for machine in machines for check in machine.report.checks if check.results
    )
    for name, device in keys:
        found = {machine.name: _find(machine.report, name, device) for machine in machines}
        deviating = _deviations(machines, found)
        deviations += deviating
        rows.append(_row(machines, found, {each.machine for each in deviating}))
    return Fleet(machines=tuple(machines), rows=tuple(rows), deviations=tuple(deviations))


def _find(report: SelfTestReport, name: str, device: str) -> CheckResult | None:
    return next((check for check in report.checks if (check.name, check.device) == (name, device)), None)


def _groups(
    machines: Sequence[Machine], found: Mapping[str, CheckResult | None]
) -> list[dict[str, CheckResult]]:
    """Return the machines with a result, by kind."""
    groups: dict[tuple[tuple[str, str], ...], dict[str, CheckResult]] = {}
    for machine in machines:
        check = found[machine.name]
        if check is not None and check.results:
            facts = tuple(kind(machine.report, check).items())
            if any(value == UNKNOWN for _, value in facts):  # of no other's kind
                facts = (*facts, ("machine", machine.name))
            groups.setdefault(facts, {})[machine.name] = check
    return list(groups.values())


def _deviations(machines: Sequence[Machine], found: Mapping[str, CheckResult | None]) -> list[Deviation]:
    deviating = []
    for group in _groups(machines, found):
        counts = Counter(check.fingerprint for check in group.values()).most_common()
        if len(counts) == 1:
            continue
        most = counts[0][0] if counts[0][1] > counts[1][1] else None
        for name, check in group.items():
            if check.fingerprint == most:
                continue
            others = {
                other: theirs
                for other, theirs in group.items()
                if theirs.fingerprint != check.fingerprint and most in (None, theirs.fingerprint)
            }
            against = next(iter(others.values()))
            deviating.append(
                Deviation(
                    machine=name,
                    check=check.name,
                    device=check.device,
                    others=tuple(others),
                    results=differing(check, against),
                    ulp=distance(check, against),
                )
            )
    return deviating


def _row(machines: Sequence[Machine], found: Mapping[str, CheckResult | None], deviating: set[str]) -> Row:
    known = {name: check for name, check in found.items() if check is not None and check.results}
    company = {name for group in _groups(machines, found) if len(group) > 1 for name in group}
    letters = {
        print_: _letter(i) for i, print_ in enumerate(dict.fromkeys(c.fingerprint for c in known.values()))
    }
    first = next(iter(known.values()))
    cells = []
    for name, check in found.items():
        if name not in known or check is None:
            reason = check.reason or check.status if check is not None else "not in the report"
            cells.append(Cell(machine=name, state="no result", bits="", reason=reason, ulp=None))
            continue
        state: State = "deviates" if name in deviating else "agrees" if name in company else "alone"
        cells.append(
            Cell(
                machine=name,
                state=state,
                bits=letters[check.fingerprint],
                reason="",
                ulp=distance(first, check),
            )
        )
    return Row(name=first.name, device=first.device, scope=first.scope, cells=tuple(cells))


def _letter(index: int) -> str:
    """A to Z, then AA."""
    return (_letter(index // 26 - 1) if index >= 26 else "") + chr(ord("A") + index % 26)
