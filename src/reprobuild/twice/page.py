"""The report as one HTML page, which loads nothing from elsewhere. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..selftest.pages import template
from .compare import TimelineRow
from .report import counted, left_out, rows, timelines, ulp_text, verdict, verdict_line
from .runs import Comparison

MOST_ROWS = 400
"""Moments of a process that are shown: those around the first that parted, where there are more."""
WIDTH, HEIGHT = 900, 160


@dataclass(frozen=True, kw_only=True, slots=True)
class PageProcess:
    """One process on the page."""

    label: str
    rows: list[tuple[TimelineRow, str]]
    """Each with its distance as text."""
    generators: list[str]
    """Parts reported elsewhere: an unseeded generator differs in each run."""
    left_out: int
    points: list[tuple[float, float, str]]
    """Of the distances, in pixels, with what each is."""
    highest: str


def twice_page(found: Comparison) -> bytes:
    """Return the whole page."""
    text = template("twice.html.j2").render(
        verdict=verdict(found),
        line=verdict_line(found),
        rows=rows(found),
        counted=counted(found),
        processes=[_process(label, moments) for label, moments in timelines(found)],
        ends=found.ends,
        left_out=left_out(),
        width=WIDTH,
        height=HEIGHT,
        other=found.other,
    )
    return text.encode()


def _process(label: str, moments: list[TimelineRow]) -> PageProcess:
    first = next((i for i, row in enumerate(moments) if _matters(row)), 0)
    start = max(0, min(first - MOST_ROWS // 4, len(moments) - MOST_ROWS))
    shown = moments[start : start + MOST_ROWS]
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
        rows=[(row, ulp_text(row.ulp)) for row in shown],
        generators=sorted({name for row in moments for name in row.parted if name.startswith("random ")}),
        left_out=len(moments) - len(shown),
        points=points[::every],
        highest=ulp_text(max((row.ulp or 0 for row in moments), default=0)),
    )


def _matters(row: TimelineRow) -> bool:
    return any(not name.startswith("random ") for name in row.parted)
