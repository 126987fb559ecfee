"""What a program writes where its clocks run faster: a number that grows with them is a time. Pure.

No record has to say where the number came from: NumPy, torch or a database may have made it of times.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .evidence import Evidence
from .line_forms import NUMBER
from .text_tokens import LASTING, UUID, printed_range, seconds_of

PACES = (100, 1000)
"""How many times as fast the clocks run, in one run each."""
GROWN = "duration or speed, as runs with faster clocks show"
BY_DIGITS = "duration or speed, by its digits alone"
"""What is said of a number with the digits of a measured one, where no word beside it speaks of a measure."""
_LIKE, _LONGER = 10.0, 20.0
"""How many times as short and as long the same may take in another run, on a busy machine."""
_LEAST = 20.0
"""How many times as large a time has to become at least."""
_LEAST_WHOLE = 9.5
"""Whole milliseconds and the like that are taken for a time."""
_NUMBER = re.compile(rf"{LASTING}|{NUMBER.pattern}")
_DRAWN = re.compile(rf"\b(?:{UUID}|(?=\d*[a-f])[0-9a-f]{{16,}})\b")
"""A name that each run draws, with other digits."""


@dataclass
class FasterRun:
    """What one run wrote with clocks that ran so many times as fast."""

    times: int
    texts: Mapping[str, Sequence[str]]
    """The lines of each stream and file, by its name in the report."""
    evidence: Evidence = field(default_factory=Evidence)
    _shapes: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    def alike(self, where: str, shape: str) -> Sequence[str]:
        """Return its lines of a shape."""
        if where not in self._shapes:
            self._shapes[where] = _by_shape(self.texts.get(where, ()))
        return self._shapes[where].get(shape, [])


class GrownTimes:
    """Tells the numbers of one text of a run that grow with its clocks."""

    def __init__(self, runs: Sequence[FasterRun], lines: Sequence[str], where: str) -> None:
        self._runs, self._where = runs, where
        self._places: dict[str, tuple[str, int, int]] = {}
        """Of each line its shape, which of this shape it is the first time, and how many there are."""
        for shape, alike in _by_shape(lines).items() if runs else ():
            for turn, line in enumerate(alike):
                self._places.setdefault(line, (shape, turn, len(alike)))

    def are_times(
        self, pair: tuple[str, str], lines: tuple[str, str], *, of_measure: bool = False
    ) -> bool | None:
        """Return whether a number that differs between lines of two runs is a time, or a number in a time.

        ``of_measure``: the words beside it say so. False: it is as large with faster clocks. None: neither is
        known, as where they have no such line.
        """
        shape, turn, many = self._places.get(lines[0], ("", 0, 0))
        faster = [(run.times, run.alike(self._where, shape)) for run in self._runs]
        if not many or shape_of(lines[1]) != shape or any(len(found) != many for _, found in faster):
            return None
        numbers = [_numbers(line) for line in lines]
        places = [at for at, both in enumerate(zip(*numbers, strict=True)) if both == pair]
        grown = [(times, _numbers(found[turn])) for times, found in faster]
        each = [[(times, found[at]) for times, found in grown] for at in places]
        if any(stays(pair, texts) for texts in each):
            return False
        return True if each and all(is_time(pair, texts, of_measure=of_measure) for texts in each) else None


def stays(pair: Sequence[str], grown: Sequence[tuple[int, str]]) -> bool:
    """Return whether a number is about as large in runs with faster clocks, as no time is.

    Whole numbers may be the milliseconds of a second, which are as large by any clock.
    """
    found = _Growth.of(pair, grown)
    alike = all(b * _LONGER >= found.low and a <= found.high * _LONGER for _, a, b in found.grown)
    return bool(found.grown) and alike and found.has_parts and not found.is_longer


def is_time(pair: Sequence[str], grown: Sequence[tuple[int, str]], *, of_measure: bool = False) -> bool:
    """Return whether a number is a time, by two runs with clocks as they are and some with faster ones.

    A time is as many times as long by a faster clock, a number in a time as many times as small; what is
    computed with a time in another way grows otherwise, and a result does not.
    """
    found = _Growth.of(pair, grown)
    texts = (*pair, *(text for _, text in grown))
    if not grown or not math.isfinite(found.high):
        return False
    if all(":" in text for text in texts) and _is_moment(pair, grown):
        return True
    # A whole number may count what was done each time that a while was over, or until one was: a result.
    large = found.has_parts or found.low >= _LEAST_WHOLE or of_measure
    if large and found.is_longer and max(a for _, a, _ in found.grown) >= found.high * _LEAST:
        return True
    return all("." in text for text in texts) and found.is_fewer


@dataclass(frozen=True)
class _Growth:
    """What a number is at least and at most, in runs as they are and in those with faster clocks."""

    low: float
    high: float
    grown: Sequence[tuple[int, float, float]]
    """How many times as fast, and what it was at least and at most."""
    has_parts: bool
    """Whether it is written with a part of a unit."""

    @classmethod
    def of(cls, pair: Sequence[str], grown: Sequence[tuple[int, str]]) -> _Growth:
        """Return what texts mean. Of one number all have as many decimals, but for zeros at the end."""
        many = max(len(text.partition(".")[2]) for text in (*pair, *(text for _, text in grown)))
        ranges = [_range(text, many) for text in pair]
        return cls(
            low=min(low for low, _ in ranges),
            high=max(high for _, high in ranges),
            grown=[(times, *_range(text, many)) for times, text in grown],
            has_parts=all("." in text or ":" in text for text in pair),
        )

    @property
    def is_longer(self) -> bool:
        """Whether it may be as many times as large as clocks are faster."""
        (times, least, _), (more, _, most) = self.grown[0], self.grown[-1]
        grows = most * _LIKE >= least * more / times
        fit = (
            b * _LIKE >= self.low * faster and a <= self.high * faster * _LONGER
            for faster, a, b in self.grown
        )
        return grows and all(fit)

    @property
    def is_fewer(self) -> bool:
        """Whether it is as many times as small as clocks are faster."""
        fit = (
            b * times * _LONGER >= self.low and a * times <= self.high * _LIKE and 0 < b * _LEAST <= self.low
            for times, a, b in self.grown
        )
        return self.low > 0 and all(fit)


def _is_moment(pair: Sequence[str], grown: Sequence[tuple[int, str]]) -> bool:
    """Return whether a time of day, such as 14:05, is later by as much as faster clocks are ahead."""
    parts = {text.count(":") for text in (*pair, *(text for _, text in grown))}
    if len(parts) > 1:
        return False
    day = 1440 if parts == {1} else 86400
    first, other = map(seconds_of, pair)
    later = [((seconds_of(text) - first) % day, times - 1) for times, text in grown]
    spans, rates = [span for span, _ in later], [span / ahead for span, ahead in later]
    clear = min(spans) >= 1 and max(spans) >= _LEAST * (abs(first - other) + 1)
    return clear and max(rates) <= _LIKE * min(rates)


def _range(text: str, decimals: int) -> tuple[float, float]:
    """Return what a text with so many decimals, some of them zeros that are left out, may stand for."""
    if ":" in text:
        half = 10.0 ** -len(text.partition(".")[2])
        return max(0.0, seconds_of(text) - half), seconds_of(text) + half
    if not text.replace(".", "", 1).isdigit():  # it has an exponent
        return printed_range(text)
    own = len(text.partition(".")[2])
    decimals = own if own > 1 and text.endswith("0") else decimals  # else it would be left out
    value, half = float(text), 0.5 * 10.0 ** -min(decimals, 300)
    return value - half * 1.000001, value + half * 1.000001


def _numbers(line: str) -> list[str]:
    return [match[0] for match in _NUMBER.finditer(_DRAWN.sub("@", line))]


def shape_of(line: str) -> str:
    """Return a line without its numbers and drawn names."""
    return " ".join(_NUMBER.sub(" # ", _DRAWN.sub("@", line)).split())


def _by_shape(lines: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        found[shape_of(line)].append(line)
    return found
