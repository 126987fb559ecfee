"""Lines that a program writes whenever some time has passed: which of them differs from run to run. Pure.

With clocks that run faster it writes more of them. So each such line of a run as it is has to be among those
of the fastest run, but for the measured numbers that a log is known to have at those very places, and for
dates and drawn names of the run: time chooses among lines that are the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from .evidence import MAYBE, Evidence
from .faster_clocks import FasterRun
from .line_numbers import by_shape, shape_of
from .text_tokens import Token, tokens

TIMED = "which lines were written as time passed, as runs with faster clocks show"
OF_LIBRARY = "a line that a library writes if something was fast"
_OF_LIBRARIES = re.compile(
    # transformers, where all of a training's checkpoints were saved within a second, as its loggers write it:
    # https://github.com/huggingface/transformers/blob/main/src/transformers/trainer_utils.py
    r"(?:\[transformers\] |\[[A-Z]+\|(?:trainer_utils|logging)\.py:\d+\] [\d-]{10} [\d:,]{8,12} >> )?"
    r"mtime may not be reliable on this filesystem, falling back to numerical ordering"
)
"""Such lines as a whole: one with anything else beside is a result."""
LEAST_KEPT = 3
"""Lines of a shape that show which of its numbers are measured."""
Side = tuple[Sequence[str], Evidence]
"""The lines of a run, and what is known of it."""


def without_libraries_lines(
    one: Sequence[str], other: Sequence[str]
) -> tuple[list[str], list[str], list[tuple[str, str]]]:
    """Return the lines of two runs without those of libraries that tell how fast it was, and the first."""
    told = [[line for line in lines if _OF_LIBRARIES.fullmatch(line)] for lines in (one, other)]
    left, right = ([line for line in lines if not _OF_LIBRARIES.fullmatch(line)] for lines in (one, other))
    return left, right, [("".join(told[0][:1]), "".join(told[1][:1]))] if any(told) else []


def without_timed(
    one: Side, other: Side, faster: Sequence[FasterRun], where: str
) -> tuple[list[str], list[str], list[tuple[str, str]]]:
    """Return the lines of two runs without those, and the first of each kind that was left out."""
    if not faster:
        return list(one[0]), list(other[0]), []
    counts = [Counter(lines) for lines, _ in (one, other)]
    more = (counts[0] - counts[1], one[1]), (counts[1] - counts[0], other[1])
    differ = {shape_of(line) for lines, side in more for line in lines if not _has_drawn(line, side)}
    alike = [by_shape(lines) for lines, _ in (one, other)] if differ else []
    both = {
        shape: [(found.get(shape, []), side) for found, (_, side) in zip(alike, (one, other), strict=True)]
        for shape in differ
    }
    timed = {shape for shape, sides in both.items() if _is_timed(shape, sides, faster, where)}
    left = [[line for line in lines if not timed or shape_of(line) not in timed] for lines, _ in (one, other)]
    shown = [["".join(lines[:1]) for lines, _ in both[shape]] for shape in sorted(timed)]
    return left[0], left[1], [(first, second) for first, second in shown]


def _is_timed(shape: str, sides: Sequence[Side], faster: Sequence[FasterRun], where: str) -> bool:
    """Return whether time chooses which lines of a shape come; ``sides``: those of each run."""
    most, *_, fastest = sorted(faster, key=lambda run: run.times)
    many, known = most.alike(where, shape), fastest.alike(where, shape)
    if not max(len(lines) for lines, _ in sides) < len(many) <= len(known):
        return False
    measured = _always_measured(known, fastest.evidence)
    meant = {_meaning(line, fastest.evidence, measured) for line in known}
    return all(_meaning(line, evidence) in meant for lines, evidence in sides for line in lines)


def _always_measured(lines: Sequence[str], evidence: Evidence) -> frozenset[int]:
    """Return which numbers of lines of one shape are measured in each of those that a log was kept of, which
    are the first and the last of many.
    """
    kept = [
        {at for at, token in enumerate(tokens(line, evidence)) if _is_measured(token)}
        for line in lines
        if evidence.written_in(line)
    ]
    return frozenset(kept[0].intersection(*kept)) if len(kept) >= LEAST_KEPT else frozenset()


def _is_measured(token: Token) -> bool:
    return any(not item.site[0].startswith(MAYBE) for item in token.written)


def _has_drawn(line: str, evidence: Evidence) -> bool:
    """Return whether a line has a drawn name, whose digits would make another form of it in each run."""
    return any(token.kind == "drawn name" for token in tokens(line, evidence))


def _meaning(line: str, evidence: Evidence, measured: frozenset[int] = frozenset()) -> str:
    """Return a line without what its run knows to be measured or drawn, and the numbers that always are."""
    return "".join(
        "<measured>"
        if _is_measured(token) or (at in measured and token.kind == "number")
        else f"<{token.key}>"
        if token.key
        else " "
        if token.kind == "space"  # before a longer number there are fewer
        else token.text
        for at, token in enumerate(tokens(line, evidence))
    )
