"""How figures grow with a count, as a picture: lines on two logarithmic scales, as SVG that loads nothing."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from math import ceil, floor, log10

_LEFT, _TOP, _WIDTH, _HEIGHT = 70, 40, 520, 340
"""Room beside and above the field, and the field itself, in pixels."""
_COLOURS = ("#2b6cb0", "#c05621", "#2f855a", "#6b46c1", "#b83280")


def curves(title: str, unit: str, series: Mapping[str, Mapping[int, float]]) -> str:
    """Return the picture of some series, count → figure above zero; dashed: linear from the first."""
    counts = [count for figures in series.values() for count in figures]
    figures = [figure for each in series.values() for figure in each.values()]
    left, right = log10(min(counts)), log10(max(counts))
    low, high = floor(log10(min(figures))), max(ceil(log10(max(figures))), floor(log10(min(figures))) + 1)

    def x(count: float) -> float:
        return _LEFT + _WIDTH * (log10(count) - left) / (right - left)

    def y(figure: float) -> float:
        return _TOP + _HEIGHT * (high - log10(figure)) / (high - low)

    lines = [_text(10, 22, title, "bold")]
    for power in range(low, high + 1):
        at = y(10.0**power)
        lines.append(_line(_LEFT, at, _LEFT + _WIDTH, at, "#e2e8f0"))
        lines.append(_text(_LEFT - 6, at + 4, f"{10.0**power:g} {unit}", anchor="end"))
    lines += [_text(x(n), _TOP + _HEIGHT + 18, str(n), anchor="middle") for n in sorted(set(counts))]
    for number, (name, rows) in enumerate(series.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        first, *_, last = sorted(rows)
        points = " ".join(f"{x(n):.1f},{y(rows[n]):.1f}" for n in sorted(rows))
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        top = min(rows[first] * last / first, 10.0**high)
        end = first * top / rows[first]
        lines.append(_line(x(first), y(rows[first]), x(end), y(top), colour, dashed=True))
        lines.append(_text(_LEFT + _WIDTH + 10, _TOP + 16 * (number + 1), name, colour=colour))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 260}" height="{_HEIGHT + 80}"'
    body = "\n".join(['<rect width="100%" height="100%" fill="white"/>', *lines])
    return f'{head} font-family="sans-serif" font-size="12">\n{body}\n</svg>\n'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, *, dashed: bool = False) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    dashes = ' stroke-dasharray="4 4"' if dashed else ""
    return f'<line {ends} stroke="{colour}"{dashes}/>'


def _text(
    x: float, y: float, words: str, weight: str = "normal", *, anchor: str = "start", colour: str = "black"
) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" font-weight="{weight}" text-anchor="{anchor}" fill="{colour}"'
    return f"<text {place}>{escape(words)}</text>"
