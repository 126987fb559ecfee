"""What a program writes where its clocks run faster: a number that grows with them is a time. Pure.

No record has to say where the number came from: NumPy, torch or a database may have made it of times.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from statistics import median

from .derived_items import SiteKey
from .evidence import FEW, Evidence
from .line_forms import NUMBER, columns_of_measure, commas_of
from .progress_bars import redrawn
from .text_tokens import LASTING, UUID, digits, measured_items, printed_range, seconds_of

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
_NUMBER = re.compile(rf"{LASTING}|{NUMBER.pattern}")
_DRAWN = re.compile(rf"\b(?:{UUID}|(?<!\d\.)(?=\d*[a-f])[0-9a-f]{{16,}})\b")
"""A name that each run draws, with other digits; no decimals with an exponent."""
_SECONDS = {
    **dict.fromkeys(("ns", "nsec"), 1e-9),
    **dict.fromkeys(("us", "µs", "usec"), 1e-6),
    **dict.fromkeys(("ms", "msec"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60.0),
}
"""Units of a duration, which change with its size, as joblib's 0.1s and 1.8min."""
_UNIT = re.compile(rf"\s?({'|'.join(sorted(_SECONDS, key=len, reverse=True))})(?![^\W_]|/)")
_RATE = re.compile(
    rf"(?:(?P<a>[A-Za-z]+)/s|(?P<unit>{'|'.join(sorted(_SECONDS, key=len, reverse=True))})/(?P<b>[A-Za-z]+))"
    r"(?![^\W_])"
)
"""As tqdm writes it: it/s, or s/it where one takes longer than a second; Keras has 188us/step."""
_SHAPE = re.compile(rf"(?:{_NUMBER.pattern})(?:{_RATE.pattern}|{_UNIT.pattern})?")
_WORDED = re.compile(r"(?<![\w.])(\d+)m ?(\d+(?:\.\d+)?)s(?![^\W_])")
_SIGN = re.compile(r"(?<!\w)[+-](?=\d)")
_THOUSANDS = re.compile(r"(?<=[\s=(:$])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d,])")
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
            self._shapes[where] = by_shape(_last_states(self.texts.get(where, ())))
        return self._shapes[where].get(shape, [])

    def with_numbers(self, where: str, shape: str, numbers: Mapping[int, str]) -> str:
        """Return the only line of a shape with these numbers at these places; empty: none, or several."""
        key = (where, shape, tuple(numbers))
        if key not in self._alone and len(self._alone) >= _MOST_INDEXES:
            return ""
        if key not in self._alone:
            found = self._alone[key] = {}
            for line in self.alike(where, shape):
                read = _numbers(line)
                texts = tuple(read[at].text for at in numbers)
                found[texts] = "" if texts in found else line
        return self._alone[key].get(tuple(numbers.values()), "")


class GrownTimes:
    """Tells the numbers of one text of a run that grow with its clocks."""

    def __init__(self, runs: Sequence[FasterRun], lines: Sequence[str], where: str) -> None:
        self._runs, self._where = runs, where
        self._lines = lines if runs else ()
        self._shapes = by_shape(_last_states(self._lines))
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
        if lines[0] not in self._turns or (shape := shape_of(lines[0])) != shape_of(lines[1]):
            return None
        both = _numbers(lines[0]), _numbers(lines[1])
        faster = [(run.times, self._same(run, shape, lines[0], both)) for run in self._runs]
        if not all(found for _, found in faster):
            return None
        verdicts = []
        pair = pair[0].replace(",", ""), pair[1].replace(",", "")
        for at, (x, y) in enumerate(zip(*both, strict=True)):
            if (x.text, y.text) == pair:
                grown = [(times, found[at]) for times, found in faster]
                a, b, *texts = _in_one_unit([x, y, *(number for _, number in grown)])
                with_times = [(times, text) for (times, _), text in zip(grown, texts, strict=True)]
                if _follows(self._direction(shape, at, x.column), (a, b), with_times):
                    verdicts.append(True)
                elif stays((a, b), with_times):
                    if not self._gave(sites, [number.text for _, number in grown]):
                        return False
                    verdicts.append(True)
                else:
                    verdicts.append(is_time((a, b), with_times, of_measure=of_measure))
        return True if verdicts and all(verdicts) else None

    def _gave(self, sites: AbstractSet[SiteKey], texts: Sequence[str]) -> bool:
        """Return whether one of some places gave a few numbers in each of the faster runs, and these."""
        for run, text in zip(self._runs, texts, strict=True):
            given = measured_items(text, run.evidence)
            sites = sites & {item.site for item in given if item.at + item.left < FEW}
        return bool(sites)

    def _same(
        self, run: FasterRun, shape: str, line: str, both: tuple[list[_Number], list[_Number]]
    ) -> list[_Number]:
        """Return the numbers of the line of a faster run that is a line of this one; empty: it has none.

        It is the only one of that shape with the numbers that are equal in both runs, or the one at its turn.
        """
        known = {at: x.text for at, (x, y) in enumerate(zip(*both, strict=True)) if x.text == y.text}
        alike = run.alike(self._where, shape)
        if known and (found := run.with_numbers(self._where, shape, known)):
            return _numbers(found)
        return _numbers(alike[self._turns[line]]) if len(alike) == len(self._shapes[shape]) else []

    def _direction(self, shape: str, at: int, column: int) -> int:
        """Return how the numbers at a place of lines with the same words change, or else those of a column.

        1: they grow as times do, -1: they shrink as speeds do, 0: neither.
        """
        if (key := (shape, at)) not in self._directions:
            lines = [(1, self._shapes[shape])]
            lines += [(run.times, list(run.alike(self._where, shape))) for run in self._runs]
            numbers = [(times, [_numbers(line)[at] for line in alike]) for times, alike in lines]
            self._directions[key] = _together(numbers) if any(map(str.isalpha, shape)) else 0
        if self._directions[key] or column not in columns_of_measure(self._lines[0]):
            return self._directions[key]
        if (of_column := ("", column)) not in self._directions:
            texts = [(1, self._lines), *((run.times, run.texts.get(self._where, ())) for run in self._runs)]
            self._directions[of_column] = _together(
                [(times, _column(lines, column)) for times, lines in texts]
            )
        return self._directions[of_column]


@dataclass(frozen=True, slots=True)
class _Number:
    """A number in a line."""

    text: str
    seconds: float
    """Of its unit; 0: it has none that is of time."""
    column: int
    """How many commas are before it."""
    rate: str = ""
    """Whether its unit is ``it/s`` or ``s/it``."""
    whole: str = ""
    """Of minutes or seconds in a duration such as 1m 20s this one, with colons."""

    @property
    def value(self) -> float:
        return (seconds_of(self.text) if ":" in self.text else float(self.text)) * (self.seconds or 1.0)

    @property
    def duration(self) -> float:
        """Return the seconds that one takes of what there is a rate of."""
        return self.value if self.rate != "it/s" else 1 / self.value if self.value else math.inf


def _in_one_unit(numbers: Sequence[_Number]) -> list[str]:
    """Return the texts of numbers, in seconds where their units are not the same."""
    if all(number.whole for number in numbers):
        return [number.whole for number in numbers]
    if len({(number.seconds, number.rate) for number in numbers}) == 1:
        return [number.text for number in numbers]
    if any(number.rate for number in numbers):
        return [f"{number.duration:.6f}" for number in numbers]
    return [f"{number.value:.{len(numbers[0].text.partition('.')[2])}f}" for number in numbers]


def _column(lines: Sequence[str], column: int) -> list[_Number]:
    """Return the numbers of a column of a table with commas."""
    many = commas_of(lines[0]) if lines else 0
    fields = [line.split(",")[column] for line in lines[1:] if many and line.count(",") == many]
    return [_Number(field, 0.0, column) for field in fields if _NUMBER.fullmatch(field)]


def _together(columns: Sequence[tuple[int, Sequence[_Number]]]) -> int:
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


def _plain(line: str) -> str:
    """Return a line without drawn names, signs, and commas between thousands where it is no row of them."""
    return _THOUSANDS.sub(lambda number: number[0].replace(",", ""), _SIGN.sub("", _DRAWN.sub("@", line)))


def _numbers(line: str) -> list[_Number]:
    text = _plain(line)
    found = []
    wholes = {at: each for each in _WORDED.finditer(text) for at in range(*each.span())}
    for match in _NUMBER.finditer(text):
        unit, rate = _UNIT.match(text, match.end()), _RATE.match(text, match.end())
        seconds = _SECONDS[unit[1]] if unit else _SECONDS[rate["unit"]] if rate and rate["unit"] else 0.0
        told = ("it/s" if rate["a"] else "s/it") if rate else ""
        whole = ":".join(wholes[match.start()].groups()) if match.start() in wholes else ""
        found.append(_Number(match[0], seconds, text.count(",", 0, match.start()), told, whole))
    return found


def shape_of(line: str) -> str:
    """Return a line without its numbers, the units of time behind them, and drawn names."""
    shape = _SHAPE.sub(lambda number: f" # {number['a'] or number['b'] or ''} ", _plain(line))
    return " ".join(shape.split())


def _last_states(lines: Sequence[str]) -> list[str]:
    """Return lines, of those that are drawn again and again the last state."""
    return [redrawn(line).last if "\r" in line.rstrip("\r") else line for line in lines]


def by_shape(lines: Sequence[str]) -> dict[str, list[str]]:
    """Return the lines of each shape, in their order."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        found[shape_of(line)].append(line)
    return found
