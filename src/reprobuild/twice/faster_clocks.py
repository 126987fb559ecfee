"""What a program writes where its clocks run faster: a number that grows with them is a time. Pure.

No record has to say where the number came from: NumPy, torch or a database may have made it of times.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median

from .derived_items import SiteKey
from .evidence import FEW, Evidence
from .line_forms import columns_of_measure, commas_of
from .line_numbers import NUMBER_OR_TIME, LineNumber, bounds_of, by_shape, in_one_unit, line_numbers, shape_of
from .progress_bars import redrawn
from .ratios import MOST, Bounds, is_multiple, is_ratio
from .text_tokens import digits, measured_items, seconds_of

PACES = (100, 1000)
"""How many times as fast the clocks run, in one run each."""
GROWN = "duration or speed, as runs with faster clocks show"
BY_DIGITS = "duration or speed, by its digits alone"
"""What is said of a number with the digits of a measured one, where no word beside it speaks of a measure."""
_LIKE, _LONGER = 10.0, 20.0
"""How many times as short and as long the same may take in another run, on a busy machine."""
_COLUMN_LIKE = 50.0
"""As `_LIKE`, of the median of a column: how far times are apart depends on what else the machine does."""
_ITSELF = 3.0
"""How many times as long or short a number of such a column has to become by the fastest clock."""
_LEAST = 20.0
"""How many times as large a time has to become at least."""
_LEAST_WHOLE = 9.5
"""Whole milliseconds and the like that are taken for a time."""
_MOST_INDEXES = 64
"""Sets of places by which lines are looked up, each of which takes one pass over the lines."""
_LONG = 3
"""Digits from which a number that comes again in a faster run is no time."""
_COLUMN = 3
"""Numbers at a place of several lines, at least, whose median is looked at."""


@dataclass
class FasterRun:
    """What one run wrote with clocks that ran so many times as fast."""

    times: int
    texts: Mapping[str, Sequence[str]]
    """The lines of each stream and file, by its name in the report."""
    evidence: Evidence = field(default_factory=Evidence)
    _shapes: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    _alone: dict[tuple[str, str, tuple[int, ...]], dict[tuple[str, ...], str]] = field(default_factory=dict)

    def alike(self, where: str, shape: str) -> Sequence[str]:
        """Return its lines of a shape."""
        if where not in self._shapes:
            lines = map(self.evidence.without_words, self.texts.get(where, ()))
            self._shapes[where] = by_shape(_last_states([*lines]))
        return self._shapes[where].get(shape, [])

    def with_numbers(self, where: str, shape: str, numbers: Mapping[int, str]) -> str:
        """Return the only line of a shape with these numbers at these places; empty: none, or several."""
        key = (where, shape, tuple(numbers))
        if key not in self._alone and len(self._alone) >= _MOST_INDEXES:
            return ""
        if key not in self._alone:
            found = self._alone[key] = {}
            for line in self.alike(where, shape):
                read = line_numbers(line)
                texts = tuple(read[at].text for at in numbers)
                found[texts] = "" if texts in found else line
        return self._alone[key].get(tuple(numbers.values()), "")


@dataclass
class _SameLine:
    """A line of two runs, and of those with faster clocks."""

    shape: str = ""
    both: list[list[LineNumber]] = field(default_factory=list)
    """Its numbers in the two runs; none: it is another line in the other run."""
    faster: list[list[LineNumber]] = field(default_factory=list)
    """And in the faster ones; none: one of them has no such line."""
    times: list[list[Bounds]] | None = None
    """Its times in each run, once they were asked for."""

    @property
    def each(self) -> list[list[LineNumber]]:
        """The numbers of each run."""
        return [*self.both, *self.faster]

    @cached_property
    def places(self) -> Mapping[tuple[str, str], list[int]]:
        """The places at which two numbers stand in the two runs."""
        found: dict[tuple[str, str], list[int]] = {}
        for at, (x, y) in enumerate(zip(*self.both, strict=True) if self.both else ()):
            found.setdefault((x.text, y.text), []).append(at)
        return found


class GrownTimes:
    """Tells the numbers of one text of a run that grow with its clocks."""

    def __init__(
        self,
        runs: Sequence[FasterRun],
        lines: Sequence[str],
        where: str,
        other: Sequence[str] = (),
        sides: tuple[Evidence, Evidence] = (Evidence(), Evidence()),
    ) -> None:
        self._runs, self._where, self._sides = runs, where, sides
        self._lines = [*map(sides[0].without_words, lines)] if runs else []
        self._other = [*map(sides[1].without_words, other)] if runs else []
        """The lines of the other run."""
        self._shapes = by_shape(_last_states(self._lines))
        self._last: tuple[tuple[str, str], _SameLine] = (("", ""), _SameLine())
        self._last_shape: tuple[str, Sequence[tuple[int, list[list[LineNumber]]]]] = ("", ())
        self._turns: dict[str, int] = {}
        """Of each line which of its shape it is the first time."""
        self._directions: dict[tuple[str, int], int] = {}
        for alike in self._shapes.values():
            for turn, line in enumerate(alike):
                self._turns.setdefault(line, turn)

    def are_times(
        self,
        pair: tuple[str, str],
        lines: tuple[str, str],
        *,
        of_measure: bool = False,
        sites: AbstractSet[SiteKey] = frozenset(),
    ) -> bool | None:
        """Return whether a number that differs between lines of two runs is a time, or a number in a time.

        ``of_measure``: the words beside it say so. ``sites``: the places that gave it in both runs; it is a
        measure, too, if it is as large in the faster ones, and what one of them gave there: as the load of
        the machine is. False: it is as large with faster clocks. None: neither is known, as where they have
        no such line.
        """
        line = self._in_each_run(lines)
        if not line.faster:
            return None
        verdicts: list[bool | None] = []
        for at in line.places.get((pair[0].replace(",", ""), pair[1].replace(",", "")), ()):
            x, y, *grown = (numbers[at] for numbers in line.each)
            a, b, *texts = in_one_unit([x, y, *grown])
            with_times = [(run.times, text) for run, text in zip(self._runs, texts, strict=True)]
            if _follows(self._direction(line.shape, at, x.column), (a, b), with_times):
                verdicts.append(True)
                continue
            stayed = stays((a, b), with_times)
            known = None if stayed else is_time((a, b), with_times, of_measure=of_measure)
            if not known and (
                (stayed and self._gave(sites, [number.text for number in grown])) or self._is_ratio(at, line)
            ):
                known = True
            elif stayed:
                return False
            verdicts.append(known)
        return True if verdicts and all(verdicts) else None

    def _in_each_run(self, lines: tuple[str, str]) -> _SameLine:
        """Return a line in each run. Many of its numbers may be asked for, one after the other."""
        if lines != self._last[0]:
            self._last = lines, self._read(lines)
        return self._last[1]

    def _read(self, lines: tuple[str, str]) -> _SameLine:
        lines = self._sides[0].without_words(lines[0]), self._sides[1].without_words(lines[1])
        if lines[0] not in self._turns or (shape := shape_of(lines[0])) != shape_of(lines[1]):
            return _SameLine()
        one, other = map(line_numbers, lines)
        faster = [self._same(run, shape, lines[0], (one, other)) for run in self._runs]
        return _SameLine(shape, [one, other], faster if all(faster) else [])

    def is_multiple(
        self, pair: tuple[str, str], lines: tuple[str, str], known: AbstractSet[tuple[str, str]]
    ) -> bool:
        """Return whether a number is in each run as many times one of its line that is known to be measured.

        ``known``: pairs of such numbers. The product of a mean time and a count is one.
        """
        line = self._in_each_run(lines)
        beside = [
            [numbers[at].bounds for numbers in line.each]
            for these in known
            for at in line.places.get(these, ())
        ]
        found = line.places.get(pair, ())
        return bool(found) and all(
            is_multiple([numbers[at].bounds for numbers in line.each], beside) for at in found
        )

    def _is_ratio(self, at: int, line: _SameLine) -> bool:
        """Return whether a number is the ratio of two times of its line, or of lines that come once."""
        numbers = [each[at] for each in line.each]
        if len(numbers) < 4 or any(each.seconds or each.whole or ":" in each.text for each in numbers):
            return False
        if line.times is None:
            line.times = self._times_in(line.each)
        return is_ratio([each.bounds for each in numbers], [*line.times, *self._times])

    @cached_property
    def _times(self) -> list[list[Bounds]]:
        """The times of lines of which each run has one of that shape, in each run."""
        found: list[list[Bounds]] = []
        others = by_shape(_last_states(self._other))
        for shape, alike in self._shapes.items():
            same = [alike, others.get(shape, ()), *(run.alike(self._where, shape) for run in self._runs)]
            if all(len(each) == 1 for each in same) and len(found) < MOST:
                found += self._times_in([line_numbers(each[0]) for each in same])
        return found

    def _times_in(self, lines: Sequence[Sequence[LineNumber]]) -> list[list[Bounds]]:
        """Return the times of a line in each run."""
        found = []
        for numbers in zip(*lines, strict=True):
            a, b, *texts = in_one_unit(numbers)
            grown = [(run.times, text) for run, text in zip(self._runs, texts, strict=True)]
            if ":" not in "".join((a, b, *texts)) and is_time((a, b), grown):
                found.append([each.bounds for each in numbers])
        return found

    def _gave(self, sites: AbstractSet[SiteKey], texts: Sequence[str]) -> bool:
        """Return whether one of some places gave a few numbers in each of the faster runs, and these."""
        for run, text in zip(self._runs, texts, strict=True):
            if ":" in text:  # a time of day, which none of them gives as a number
                return False
            given = measured_items(text, run.evidence)
            sites = sites & {item.site for item in given if item.at + item.left < FEW}
        return bool(sites)

    def _same(
        self, run: FasterRun, shape: str, line: str, both: tuple[list[LineNumber], list[LineNumber]]
    ) -> list[LineNumber]:
        """Return the numbers of the line of a faster run that is a line of this one; empty: it has none.

        It is the only one of that shape with the numbers that are equal in both runs, or the one at its turn.
        """
        known = {at: x.text for at, (x, y) in enumerate(zip(*both, strict=True)) if x.text == y.text}
        alike = run.alike(self._where, shape)
        if known and (found := run.with_numbers(self._where, shape, known)):
            return line_numbers(found)
        return line_numbers(alike[self._turns[line]]) if len(alike) == len(self._shapes[shape]) else []

    def _direction(self, shape: str, at: int, column: int) -> int:
        """Return how the numbers at a place of lines with the same words change, or else those of a column.

        1: they grow as times do, -1: they shrink as speeds do, 0: neither.
        """
        if (key := (shape, at)) not in self._directions:
            numbers = [(times, [line[at] for line in alike]) for times, alike in self._numbers_of(shape)]
            self._directions[key] = _together(numbers) if numbers else 0
        if self._directions[key] or column not in columns_of_measure(self._lines[0]):
            return self._directions[key]
        if (of_column := ("", column)) not in self._directions:
            texts = [(1, self._lines), *((run.times, run.texts.get(self._where, ())) for run in self._runs)]
            self._directions[of_column] = _together(
                [(times, _column(lines, column)) for times, lines in texts]
            )
        return self._directions[of_column]

    def _numbers_of(self, shape: str) -> Sequence[tuple[int, list[list[LineNumber]]]]:
        """Return the numbers of the lines of a shape that has words, in this run and in each faster one."""
        if self._last_shape[0] != shape:
            alike = [(1, self._shapes[shape])] if any(map(str.isalpha, shape)) else []
            alike += [(run.times, [*run.alike(self._where, shape)]) for run in self._runs if alike]
            read = [(times, [line_numbers(line) for line in lines]) for times, lines in alike]
            self._last_shape = shape, read
        return self._last_shape[1]


def _column(lines: Sequence[str], column: int) -> list[LineNumber]:
    """Return the numbers of a column of a table with commas."""
    many = commas_of(lines[0]) if lines else 0
    fields = [line.split(",")[column] for line in lines[1:] if many and line.count(",") == many]
    return [LineNumber(field, 0.0, column) for field in fields if NUMBER_OR_TIME.fullmatch(field)]


def _together(columns: Sequence[tuple[int, Sequence[LineNumber]]]) -> int:
    """Return how the median of as many numbers in each run changes: 1, -1 or 0, as above."""
    if len(columns) < 2 or len(columns[0][1]) < _COLUMN or len({len(numbers) for _, numbers in columns}) > 1:
        return 0
    (_, middle), *grown = [(times, median(number.value for number in numbers)) for times, numbers in columns]
    has_parts = all("." in number.text for _, numbers in columns for number in numbers)
    if not math.isfinite(middle) or not has_parts or middle <= 0:
        return 0
    # A result among times, as in a table with a row for each measure, is the same by any clock.
    (_, plain), *_, (_, fastest) = columns
    if {number.text for number in plain if digits(number.text) >= _LONG} & {
        number.text for number in fastest
    }:
        return 0
    found = _Growth(
        middle, middle, [(times, value, value) for times, value in grown], has_parts, _COLUMN_LIKE
    )
    if found.is_longer and max(value for _, value in grown) >= middle * _LEAST:
        return 1
    return -1 if found.is_fewer else 0


def _follows(direction: int, pair: Sequence[str], grown: Sequence[tuple[int, str]]) -> bool:
    """Return whether a number changes as those of its column do, if by another factor.

    The deviation of a few times, or the first of many, is longer by chance.
    """
    if not direction or any(":" in text for text in (*pair, *(text for _, text in grown))):
        return False
    values = [float(text) for text in pair]
    faster = [float(text) for _, text in sorted(grown)]
    less, more = faster[0], faster[-1]
    if direction > 0:
        return more > less and more >= _ITSELF * max(values)
    return more < less and more * _ITSELF <= min(values)


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
    shorter: float = _LIKE
    """How many times as short it may be as a faster clock makes it."""

    @classmethod
    def of(cls, pair: Sequence[str], grown: Sequence[tuple[int, str]]) -> _Growth:
        """Return what texts mean. Of one number all have as many decimals, but for zeros at the end."""
        many = max(len(text.partition(".")[2]) for text in (*pair, *(text for _, text in grown)))
        ranges = [bounds_of(text, many) for text in pair]
        return cls(
            low=min(low for low, _ in ranges),
            high=max(high for _, high in ranges),
            grown=[(times, *bounds_of(text, many)) for times, text in grown],
            has_parts=all("." in text or ":" in text for text in pair),
        )

    @property
    def is_longer(self) -> bool:
        """Whether it may be as many times as large as clocks are faster."""
        (times, least, _), (more, _, most) = self.grown[0], self.grown[-1]
        grows = most * _LIKE >= least * more / times
        fit = (
            b * self.shorter >= self.low * faster and a <= self.high * faster * _LONGER
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


def _last_states(lines: Sequence[str]) -> list[str]:
    """Return lines, of those that are drawn again and again the last state."""
    return [redrawn(line).last if "\r" in line.rstrip("\r") else line for line in lines]
