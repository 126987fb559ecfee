"""Figures as a picture: groups of bars, medians with their spread, as SVG that loads nothing."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

_LEFT, _RIGHT, _BAR, _GAP = 260, 520, 16, 30
"""Widths of names and bars, height of a bar, room above a group; in pixels."""


@dataclass(frozen=True, slots=True)
class Bars:
    """A group: each bar's name, and what was measured with its unit."""

    title: str
    series: Mapping[str, tuple[Sequence[float], str]]


def drawn(title: str, groups: Sequence[Bars]) -> str:
    """Return the picture. All groups have one scale, so that lengths compare across them."""
    most = max((max(values) for group in groups for values, _ in group.series.values()), default=1.0)
    scale = _RIGHT / most
    lines, y = [_text(10, 22, title, "bold")], 30
    for group in groups:
        y += _GAP
        lines.append(_text(10, y - 6, group.title, "bold"))
        for number, (name, (values, unit)) in enumerate(group.series.items()):
            middle, least, greatest = statistics.median(values), min(values), max(values)
            at = y + number * (_BAR + 4)
            ours = "#2b6cb0" if name.startswith("reprobuild") else "#a0aec0"
            lines += [
                _text(_LEFT - 8, at + 12, name, anchor="end"),
                f'<rect x="{_LEFT}" y="{at}" width="{middle * scale:.1f}" height="{_BAR}" fill="{ours}"/>',
                _spread(_LEFT + least * scale, _LEFT + greatest * scale, at + _BAR / 2),
                _text(_LEFT + greatest * scale + 6, at + 12, f"{middle:.1f} {unit}"),
            ]
        y += len(group.series) * (_BAR + 4)
    width, height = _LEFT + _RIGHT + 90, y + 20
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
    body = "\n".join(['<rect width="100%" height="100%" fill="white"/>', *lines])
    return f'{head} font-family="sans-serif" font-size="12">\n{body}\n</svg>\n'


def _spread(least: float, greatest: float, y: float) -> str:
    return f'<line x1="{least:.1f}" x2="{greatest:.1f}" y1="{y}" y2="{y}" stroke="#1a202c"/>'


def _text(x: float, y: float, words: str, weight: str = "normal", *, anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" font-weight="{weight}" text-anchor="{anchor}"'
    return f"<text {place}>{escape(words)}</text>"
