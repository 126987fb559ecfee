"""The report as one HTML page, which loads nothing from elsewhere. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..selftest.pages import template
from .cause_report import ulp_text
from .first_difference import TimelineRow
from .recorded_run import Comparison
from .records import ProgramLine
from .report import counted, left_out, rows, timelines, verdict, verdict_line

MOST_ROWS = 400
"""Moments of a process that are shown: those around the first that parted, where there are more."""
WIDTH, HEIGHT = 900, 160
BEFORE, AFTER = 5, 20
"""Moments around the first that parted that are shown at once; the others fold."""
FEW = 12
"""Rows of a table that need not fold."""
AROUND = 5
"""Lines of a source before and after the one of the cause."""
_CANDIDATES = ("may be", "candidate")


@dataclass(frozen=True, kw_only=True, slots=True)
class PageProcess:
    """One process on the page."""

    label: str
    groups: list[tuple[str, list[tuple[TimelineRow, str]]]]
    """Moments, each with its distance as text; a group with a title folds."""
    generators: list[str]
    """Parts reported elsewhere: an unseeded generator differs in each run."""
    left_out: int
    points: list[tuple[float, float, str]]
    """Points of the distance plot, in pixels, each with its label."""
    highest: str
    ticks: list[tuple[float, str]]
    """Ticks of the distance axis: position and label."""
    ends: tuple[str, str]
    """What the axis of the moments begins and ends with."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AboutRun:
    """What was run, for a reader who has the page alone."""

    rows: Sequence[tuple[str, str]] = ()
    """Command, image, and the other options."""
    sources: Sequence[tuple[str, Sequence[tuple[int, str, bool]]]] = ()
    """Places of the cause, each with the source around it: number, text, whether it is the line itself."""


def lines_around(source: str, line: int) -> list[tuple[int, str, bool]]:
    """Return the lines of a source around one, for `AboutRun`."""
    every = source.splitlines()
    if not 0 < line <= len(every):
        return []
    start = max(0, line - 1 - AROUND)
    return [
        (number, text[:300], number == line)
        for number, text in enumerate(every[start : line + AROUND], start + 1)
    ]


def places_of(found: Comparison) -> list[ProgramLine]:
    """Return the lines whose source is shown: where the value came from, if proven, and where it went."""
    cause = found.cause
    if cause is None:
        return []
    proven = [cause.candidates[0].place] if cause.proven and cause.candidates else []
    return [place for place in dict.fromkeys([*proven, cause.place]) if place.file]


def twice_page(found: Comparison, about: AboutRun) -> bytes:
    """Return the whole page."""
    told, candidates = _apart(rows(found))
    text = template("twice.html.j2").render(
        about=about,
        candidates=candidates,
        texts=found.texts[:MOST_ROWS],
        few=FEW,
        verdict=verdict(found),
        line=verdict_line(found),
        rows=told,
        counted=counted(found),
        processes=[_process(label, moments) for label, moments in timelines(found)],
        ends=found.ends,
        left_out=left_out(),
        width=WIDTH,
        height=HEIGHT,
        other=found.other,
    )
    return text.encode()


def _apart(every: list[tuple[str, str]]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the report without candidates, and these. Text that differs has a table of its own."""
    told, candidates, into = list[tuple[str, str]](), list[tuple[str, str]](), None
    for heading, text in every:
        if heading:  # a row without one goes on with the row before it
            into = candidates if heading in _CANDIDATES else told if heading != "text differs" else None
        if into is not None:
            into.append((heading, text))
    return told, candidates


def _process(label: str, moments: list[TimelineRow]) -> PageProcess:
    first = next((i for i, row in enumerate(moments) if _matters(row)), 0)
    start = max(0, min(first - MOST_ROWS // 4, len(moments) - MOST_ROWS))
    shown = [(row, ulp_text(row.ulp)) for row in moments[start : start + MOST_ROWS]]
    near = max(0, first - start - BEFORE)
    groups = [(f"{near} moments before", shown[:near]), ("", shown[near : near + BEFORE + AFTER])]
    groups.append((f"{len(shown[near + BEFORE + AFTER :])} moments after", shown[near + BEFORE + AFTER :]))
    logs = [math.log2((row.ulp or 0) + 1) for row in moments]
    most = max([*logs, 1.0])
    step = WIDTH / max(1, len(moments) - 1)
    points = [
        (round(i * step, 1), round(HEIGHT - HEIGHT * logs[i] / most, 1), f"{row.label}: {ulp_text(row.ulp)}")
        for i, row in enumerate(moments)
        if row.ulp is not None
    ]
    every = max(1, len(points) // WIDTH)
    return PageProcess(
        label=label,
        groups=[group for group in groups if group[1]],
        generators=sorted({name for row in moments for name in row.parted if name.startswith("random ")}),
        left_out=len(moments) - len(shown),
        points=points[::every],
        highest=ulp_text(max((row.ulp or 0 for row in moments), default=0)),
        ticks=_ticks(most),
        ends=(moments[0].label, moments[-1].label) if moments else ("", ""),
    )


def _matters(row: TimelineRow) -> bool:
    return any(not name.startswith("random ") for name in row.parted)


def _ticks(most: float) -> list[tuple[float, str]]:
    """Return position and label of each tick of the axis; ``most`` is the logarithm of the largest."""
    found: dict[str, float] = {}
    for log in (most * part / 4 for part in range(5)):
        value = round(2**log - 1)
        text = str(value) if value < 1000 else f"2^{round(log)}"
        found.setdefault(text, round(HEIGHT - HEIGHT * log / most, 1))
    return [(y, text) for text, y in found.items()]
