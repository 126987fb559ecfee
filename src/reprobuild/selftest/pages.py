"""Reports for people: the fleet as an HTML page, costs as a plot. Pure; they load nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from .. import assets
from ..host.console import printable
from .cost import CostReport
from .fleet import Fleet, Row

if TYPE_CHECKING:
    from jinja2 import Environment, Template

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999")
"""Colors of machines, in order; distinguishable with color blindness (Okabe and Ito)."""

LEFT, LINE, WIDTH, RIGHT = 200, 22, 620, 70
"""Of both plots, in pixels: room for names, height of a line, width of the plot, room beside it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Mark:
    x: float
    y: float
    colour: str
    title: str
    deviates: bool


def fleet_page(fleet: Fleet) -> bytes:
    """Return a whole HTML page with the table of checks by machines and a plot of their distances."""
    rows = [row for row in fleet.rows if any(cell.ulp for cell in row.cells)]
    highest = max((cell.ulp or 0 for row in rows for cell in row.cells), default=0)
    needed = max(4, math.ceil(math.log2(highest + 1)))
    step = math.ceil(needed / 12)
    exponents = range(0, needed + step, step)
    colours = [COLOURS[index % len(COLOURS)] for index in range(len(fleet.machines))]
    marks = [mark for number, row in enumerate(rows) for mark in _marks(row, number, colours, exponents[-1])]
    text = template("fleet.html.j2").render(
        fleet=fleet,
        machines=list(zip(fleet.machines, colours, strict=True)),
        rows=rows,
        marks=marks,
        ticks=[(LEFT + _place(2**e - 1, exponents[-1]), f"2^{e}" if e else "0") for e in exponents],
        left=LEFT,
        line=LINE,
        width=LEFT + WIDTH + RIGHT,
        height=(len(rows) + 2) * LINE,
    )
    return text.encode()


def _place(ulp: int, last: int) -> float:
    """Return the position of a distance on a logarithmic axis that starts at 0."""
    return round(WIDTH * math.log2(ulp + 1) / last, 1)


def _marks(row: Row, number: int, colours: list[str], last: int) -> list[_Mark]:
    return [
        _Mark(
            x=LEFT + _place(cell.ulp, last),
            y=(number + 1.5) * LINE,
            colour=colour,
            title=f"{row.label} on {cell.machine}: {cell.ulp} ULP",
            deviates=cell.state == "deviates",
        )
        for cell, colour in zip(row.cells, colours, strict=True)
        if cell.ulp is not None
    ]


def cost_plot(report: CostReport) -> bytes:
    """Return an SVG of the ratio of each operation's time with determinism on to that with it off."""
    measured = [cost for cost in report.costs if cost.ratio is not None]
    last = max(2, math.ceil(max((cost.ratio or 0 for cost in measured), default=0)))
    scale = WIDTH / last
    text = template("cost.svg.j2").render(
        report=report,
        bars=[(cost, round(scale * (cost.ratio or 0), 1)) for cost in measured],
        ticks=[(LEFT + round(scale * t, 1), t) for t in range(0, last + 1, max(1, last // 10))],
        one=LEFT + round(scale, 1),
        left=LEFT,
        line=LINE,
        width=LEFT + WIDTH + RIGHT,
        height=(len(measured) + 3) * LINE,
    )
    return text.encode()


def template(name: str) -> Template:
    """Return a template of ``templates/`` that renders a page."""
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # noqa: PLC0415 -- slow; few commands render

    return Environment(
        loader=FunctionLoader(assets.template),
        undefined=StrictUndefined,
        autoescape=True,
        # Marks that turn the direction of a name's text, and control characters, which XML does not have.
        finalize=lambda value: printable(value) if type(value) is str else value,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
