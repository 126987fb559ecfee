"""Lines that a program writes whenever some time has passed: which of them differs from run to run. Pure.

With clocks that run faster it writes more of them. So each such line of a run as it is has to be among those
of the fastest run, with all numbers but those of a time or speed: time chooses among lines that are the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from .faster_clocks import FasterRun, shape_of
from .timestamps import MOMENT

TIMED = "which lines were written as time passed, as runs with faster clocks show"
_MEASURED = re.compile(
    rf"{MOMENT}|(?<![\w.])\d+(?:\.\d+)?(?= ?(?:[^\W\d_]+/s(?:ec)?|s/[^\W\d_]+|[nuµm]?s|secs?|seconds?)\b)"
)


def without_timed(
    one: Sequence[str], other: Sequence[str], faster: Sequence[FasterRun], where: str
) -> tuple[list[str], list[str], list[tuple[str, str]]]:
    """Return the lines of two runs without those, and the first of each kind that was left out."""
    counts = [Counter(map(shape_of, lines)) for lines in (one, other)]
    differ = {shape_of(line) for line in (Counter(one) - Counter(other)) + (Counter(other) - Counter(one))}
    timed = {shape for shape in differ if faster and _is_timed(shape, counts, (one, other), faster, where)}
    left = [[line for line in lines if shape_of(line) not in timed] for lines in (one, other)]
    shown = [(_first(one, shape), _first(other, shape)) for shape in sorted(timed)]
    return left[0], left[1], shown


def _is_timed(
    shape: str,
    counts: Sequence[Counter[str]],
    sides: Sequence[Sequence[str]],
    faster: Sequence[FasterRun],
    where: str,
) -> bool:
    most = max(count[shape] for count in counts)
    many = [run.alike(where, shape) for run in sorted(faster, key=lambda run: run.times)]
    if not most < len(many[0]) <= len(many[-1]):
        return False
    known = {_plain(line) for line in many[-1]}
    return all(_plain(line) in known for lines in sides for line in lines if shape_of(line) == shape)


def _first(lines: Sequence[str], shape: str) -> str:
    return next((line for line in lines if shape_of(line) == shape), "")


def _plain(line: str) -> str:
    return _MEASURED.sub("#", line)
