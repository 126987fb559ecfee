"""The numbers of a line with their units, and what the line is without them. Pure."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from .line_forms import NUMBER
from .ratios import Bounds
from .text_tokens import LASTING, UUID, printed_range, seconds_of

NUMBER_OR_TIME = re.compile(rf"{LASTING}|{NUMBER.pattern}")
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
_SHAPE = re.compile(rf"(?:{NUMBER_OR_TIME.pattern})(?:{_RATE.pattern}|{_UNIT.pattern})?")
_WORDED = re.compile(r"(?<![\w.])(\d+)m ?(\d+(?:\.\d+)?)s(?![^\W_])")
_SIGN = re.compile(r"(?<!\w)[+-](?=\d)")
_THOUSANDS = re.compile(r"(?<=[\s=(:$])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d,])")


@dataclass(frozen=True, slots=True)
class LineNumber:
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
        """Return it in seconds, where its unit is one of time."""
        return (seconds_of(self.text) if ":" in self.text else float(self.text)) * (self.seconds or 1.0)

    @property
    def bounds(self) -> Bounds:
        """Return what it is at least and at most, in seconds where it has a unit of these."""
        low, high = bounds_of(self.text, len(self.text.partition(".")[2]))
        unit = self.seconds or 1.0
        return low * unit, high * unit

    @property
    def duration(self) -> float:
        """Return the seconds that one takes of what there is a rate of."""
        return self.value if self.rate != "it/s" else 1 / self.value if self.value else math.inf


def in_one_unit(numbers: Sequence[LineNumber]) -> list[str]:
    """Return the texts of numbers, in seconds where their units are not the same."""
    if all(number.whole for number in numbers):
        return [number.whole for number in numbers]
    if len({(number.seconds, number.rate) for number in numbers}) == 1:
        return [number.text for number in numbers]
    if any(number.rate for number in numbers):
        return [f"{number.duration:.6f}" for number in numbers]
    return [f"{number.value:.{len(numbers[0].text.partition('.')[2])}f}" for number in numbers]


def bounds_of(text: str, decimals: int) -> tuple[float, float]:
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


def line_numbers(line: str) -> list[LineNumber]:
    """Return the numbers of a line, without those in drawn names."""
    text = _plain(line)
    found = []
    wholes = {at: each for each in _WORDED.finditer(text) for at in range(*each.span())}
    for match in NUMBER_OR_TIME.finditer(text):
        unit, rate = _UNIT.match(text, match.end()), _RATE.match(text, match.end())
        seconds = _SECONDS[unit[1]] if unit else _SECONDS[rate["unit"]] if rate and rate["unit"] else 0.0
        told = ("it/s" if rate["a"] else "s/it") if rate else ""
        whole = ":".join(wholes[match.start()].groups()) if match.start() in wholes else ""
        found.append(LineNumber(match[0], seconds, text.count(",", 0, match.start()), told, whole))
    return found


def shape_of(line: str) -> str:
    """Return a line without its numbers, the units of time behind them, and drawn names."""
    shape = _SHAPE.sub(lambda number: f" # {number['a'] or number['b'] or ''} ", _plain(line))
    return " ".join(shape.split())


def by_shape(lines: Sequence[str]) -> dict[str, list[str]]:
    """Return the lines of each shape, in their order."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        found[shape_of(line)].append(line)
    return found
