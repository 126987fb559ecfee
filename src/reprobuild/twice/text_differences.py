"""Holds two runs' texts against each other: what differs and comes from a clock, a drawn name or an address
is a difference of the text; everything else that differs is a result. Pure.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from math import isinf

from .evidence import EXACT, FEW, Evidence, Item, SiteKey
from .redrawn import common, redrawn
from .timestamps import MOMENT, in_run

_UNITS = frozenset(
    (
        *("ns", "us", "µs", "ms", "s", "sec", "secs", "second", "seconds", "m", "min", "mins", "minute"),
        *("minutes", "h", "hr", "hrs", "hour", "hours", "d", "day", "days", "k", "K", "M", "G", "/", "it"),
    )
)
"""Words that change with the size of a duration or a speed."""
_BAR = frozenset("█▉▊▋▌▍▎▏#")
"""Characters of a progress bar, whose length changes with the digits of the speed beside it."""
_REST = (
    r"(?P<lasting>(?<![\d.:])(?:\d+ days?, )?\d+:\d\d(?::\d\d)?(?:\.\d+)?(?![\d:]))"
    r"|(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    r"|(?P<word>[^\W\d_]+|_)|(?P<space>\s+)|(?P<other>.)"
)
_PLAIN = re.compile(_REST, re.DOTALL)
_NAME = re.compile(r"(?<![0-9A-Za-z])(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\w{6,})(?![0-9A-Za-z])")
_TOKEN = re.compile(
    rf"(?P<moment>{MOMENT})"
    r"|(?P<address>\b0x[0-9a-fA-F]{6,16}\b)"
    rf"|(?P<name>{_NAME.pattern})"
    rf"|{_REST}",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class TextDifference:
    """A difference between two runs with a known origin."""

    where: str
    values: tuple[str, str]
    kind: str


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a line."""

    kind: str
    text: str
    key: str
    """What it is by itself, as evidence of its run says; empty: nothing is known."""


def general(text: str, evidence: Evidence) -> str:
    """Return a text with what differs in each run by its nature replaced by what it is."""
    found = []
    for token in tokens(text, evidence):
        measured = token.kind == "number" and (
            _written(token.text, evidence)
            or (_digits(token.text) >= EXACT and _measured(token.text, evidence))
        )
        # A small number may be a process's and a result.
        plain = token.kind == "process number" and len(token.text) < 4
        found.append(
            "<measured>" if measured else f"<{token.key}>" if token.key and not plain else token.text
        )
    return "".join(found)


def tokens(line: str, evidence: Evidence) -> list[Token]:
    """Return a line in pieces, each with what is known of it by this run's evidence alone."""
    found: list[Token] = []
    at = 0
    phrases, drawn = evidence.phrases, evidence.names.get("drawn names", ())
    while match := _TOKEN.match(line, at):
        if phrases and not line[max(at - 1, 0) : at].isalnum() and (phrase := phrases.match(line, at)):
            key = f"drawn name {drawn.index(phrase[0])}" if phrase[0] in drawn else "pool worker 0"
            found.append(Token("drawn name", phrase[0], key))
            at = phrase.end()
            continue
        kind, text = match.lastgroup or "", match[0]
        if kind in ("moment", "address", "name"):
            known = _known(kind, text, evidence)
            if known is None and kind == "moment" and (name := _NAME.match(line, at)):
                # One that begins like a time in seconds, as 1531568797d246b9976afda8385ac64b does.
                known = _known("name", name[0], evidence)
                match, text = (name, name[0]) if known is not None else (match, text)
            if known is None:
                match = _PLAIN.match(line, at)
                if match is None:
                    break
                kind, text = match.lastgroup or "", match[0]
            else:
                before = text[: len(text) - len(known.text)]
                found += [Token("word", before, ""), known] if before else [known]
                at = match.end()
                continue
        key = ""
        if kind == "number":
            whole = evidence.parts.get(text)
            number = float(text.replace(",", ""))
            if whole is not None:
                kind, key = whole[0].removesuffix("s"), f"{whole[0]} {whole[1]}"
            elif text in evidence.millionths:
                kind = key = "time of day"
            elif len(text) >= 10 and any(start <= number < end for start, end in evidence.memory):
                kind = key = "address"
        found.append(Token(kind, text, key))
        at = match.end()
    return found


def _written(text: str, evidence: Evidence) -> bool:
    """Return whether a number was written by a place of so few that it is not one of them by chance."""
    few = max(FEW, 10 ** min(_digits(text) - 2, EXACT))
    return len(text) > 2 and any(item.at + item.left < few for item in evidence.texts.get(text, ()))


def _known(kind: str, text: str, evidence: Evidence) -> Token | None:
    if kind == "moment":
        if in_run(text, evidence.began, evidence.ended, evidence.zones):
            # By itself it may be a duration, too.
            return Token("lasting" if _LASTING.fullmatch(text) else "time of day", text, "time of day")
    elif kind == "address":
        if any(start <= int(text, 16) < end for start, end in evidence.memory):
            return Token("address", text, "address")
    else:
        for part in (text, text[-_TEMPORARY:]):
            whole = evidence.parts.get(part.replace("-", ""))
            if whole is not None:
                return Token("drawn name", part, f"{whole[0].removesuffix('s')} {whole[1]}")
        if text in evidence.drawn:
            return Token("drawn name", text, f"drawn {evidence.drawn.index(text)}")
    return None


def _digits(text: str) -> int:
    mantissa = re.split("[eE]", text)[0]
    return len(re.sub(r"\D", "", mantissa).lstrip("0"))


def _range(text: str) -> tuple[float, float]:
    """Return the interval of numbers that print like this; infinite for one that no float holds."""
    mantissa, _, exponent = text.replace(",", "").lower().partition("e")
    value = float(text.replace(",", ""))
    if isinf(value):  # so does a hash such as 8e681493462 read
        return value, value
    half = 0.5 * 10.0 ** min(float(exponent or 0) - len(mantissa.partition(".")[2]), 308.0)
    if _digits(text) in _SINGLE:
        half = max(half, value * 2.0**-24)
    return value - half * 1.000001, value + half * 1.000001


def _measured(text: str, evidence: Evidence) -> list[Item]:
    return evidence.between(*_range(text))


def _seconds(text: str) -> float:
    days, _, clock = text.rpartition(" ")
    value = 0.0
    for part in clock.split(":"):
        value = 60 * value + float(part)
    return value + 86400 * float(days.split()[0]) if days else value


class Texts:
    """Compares the texts of two runs, each with its evidence."""

    def __init__(self, one: Evidence, other: Evidence) -> None:
        self._sides = (one, other)
        self._used: set[tuple[SiteKey, int, int]] = set()
        self._slots: tuple[dict[str, list[str]], ...] = ()
        self.apart: tuple[str, str] | None = None
        """The lines of which one is a result, where they are not on the same line."""

    def compare(
        self, one: Sequence[str], other: Sequence[str], where: str, *, many: bool
    ) -> tuple[int | None, list[TextDifference]]:
        """Return the first line, from 0, with a differing result, and the differences that do not count.

        With ``many`` processes, which print when they come to it, the order of lines does not count.
        """
        self.apart = None
        if list(one) == list(other):
            return None, []
        pairs = list(zip(one, other, strict=False))
        found: list[TextDifference] = []
        if many and len(one) == len(other):
            pairs = self._matched(one, other)
            if Counter(one) == Counter(other):
                at = next(n for n, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
                values = (one[at][:160], other[at][:160])
                return None, [TextDifference(f"line {at + 1} of {where}", values, "order of the processes")]
        self._used.clear()
        self._slots = tuple(_templates(lines) for lines in (one, other))
        for number, (a, b) in enumerate(pairs):
            if a != b:
                explained = self._line(a, b, f"line {number + 1} of {where}")
                if explained is None:
                    self.apart = (a, b) if (a, b) != (one[number], other[number]) else None
                    return number, found
                found += explained
        return (None if len(one) == len(other) else min(len(one), len(other))), found

    def _matched(self, one: Sequence[str], other: Sequence[str]) -> list[tuple[str, str]]:
        """Put lines side by side that are equal but for their order."""
        common = Counter(one) & Counter(other)
        rest = []
        for side, lines in enumerate((one, other)):
            left = Counter(common)
            alone = []
            for line in lines:
                if left[line]:
                    left[line] -= 1
                else:
                    meant = _NUMBERED.sub(r"<\1>", general(line, self._sides[side]))
                    alone.append(((_template(meant), meant), line))
            rest.append([line for _, line in sorted(alone, key=lambda pair: pair[0])])
        return list(zip(*rest, strict=True))

    def _line(self, one: str, other: str, where: str) -> list[TextDifference] | None:
        """Return the differences of two lines, each explained; None: one is a result."""
        if "\r" not in one.rstrip("\r") or "\r" not in other.rstrip("\r"):
            return self._pair((one, other), where, redrawn=False)
        a, b = redrawn(one), redrawn(other)
        if len(a.others) != len(b.others):
            return None
        found: list[TextDifference] = []
        for pair in ((a.last, b.last), *zip(a.others, b.others, strict=True)):
            if pair[0].split() != pair[1].split():
                explained = self._pair(pair, where, redrawn=True)
                if explained is None:
                    return None
                found += explained
        drawn_over = next((pair for pair in common(a, b) if pair[0].split() != pair[1].split()), None)
        if drawn_over is not None:
            found.append(TextDifference(where, (drawn_over[0][:160], drawn_over[1][:160]), "drawn over"))
        times = (f"{one.count(_CR)}", f"{other.count(_CR)}")
        return found or [TextDifference(where, times, "times drawn again")]

    def _pair(self, lines: tuple[str, str], where: str, *, redrawn: bool) -> list[TextDifference] | None:
        """Return the differences of two lines without carriage returns in them."""
        both = [tokens(line, side) for line, side in zip(lines, self._sides, strict=True)]
        found: list[TextDifference] = []
        measured: tuple[set[int], set[int]] = (set(), set())
        loose: list[tuple[int, int]] = []
        for region in _regions(*both):
            numbers, rest = (
                [
                    [at for at in each if (t[at].kind in _COUNTED or bool(t[at].key)) == is_number]
                    for t, each in zip(both, region, strict=True)
                ]
                for is_number in (True, False)
            )
            if len(numbers[0]) != len(numbers[1]):
                return None
            for i, j in zip(*numbers, strict=True):
                x, y = both[0][i], both[1][j]
                if x.text != y.text:
                    of_measure = _is_of_measure(both[0], i)
                    kind = self._explained(x, y, lines, redrawn=redrawn, of_measure=of_measure)
                    if kind is None:
                        return None
                    found.append(TextDifference(where, (x.text, y.text), kind))
                    measured[0].add(i)
                    measured[1].add(j)
            if len({tuple(t[at].text for at in each) for t, each in zip(both, rest, strict=True)}) > 1:
                loose += [(side, at) for side, each in enumerate(rest) for at in each]
        fits = all(_goes_with(both[side], at, measured[side], redrawn=redrawn) for side, at in loose)
        return found if found and fits else None

    def _explained(
        self, x: Token, y: Token, lines: Sequence[str], *, redrawn: bool, of_measure: bool
    ) -> str | None:
        if x.key and x.key == y.key:
            return x.kind if x.kind not in _COUNTED else x.key
        if any(token.kind not in (*_COUNTED, "process number", "port") for token in (x, y)):
            return None  # a measured number may by chance be that of a process, too
        if "lasting" in (x.kind, y.kind):
            spans = [
                _seconds(t.text) if t.kind == "lasting" else float(t.text.replace(",", "")) for t in (x, y)
            ]
            digits = [len(t.text.partition(".")[2]) for t in (x, y)]
            items = [
                side.between(span - 0.5 * 10.0**-digit, span + 10.0**-digit)
                for side, span, digit in zip(self._sides, spans, digits, strict=True)
            ]
            common = self._common(items, (x, y), lines, redrawn=redrawn, of_measure=of_measure)
            return "duration or speed" if common else None
        written = [side.texts.get(t.text, []) for side, t in zip(self._sides, (x, y), strict=True)]
        counted = [_measured(t.text, side) for side, t in zip(self._sides, (x, y), strict=True)]
        choices = [written, counted]
        if min(_digits(t.text) for t in (x, y)) >= EXACT:
            choices.append(
                [side.made_of_some(*_range(t.text)) for side, t in zip(self._sides, (x, y), strict=True)]
            )
        for items in choices:
            if self._common(items, (x, y), lines, redrawn=redrawn, of_measure=of_measure):
                return "duration or speed"
        return None

    def _common(
        self,
        items: Sequence[Sequence[Item]],
        pair: tuple[Token, Token],
        lines: Sequence[str],
        *,
        redrawn: bool,
        of_measure: bool,
    ) -> bool:
        """Return whether both numbers came from one place, each in its run at the same turn; use it up."""
        exact = min(_digits(token.text) for token in pair) >= EXACT
        by_site: dict[SiteKey, list[Item]] = defaultdict(list)
        for item in items[1]:
            by_site[item.site].append(item)
        for item in items[0]:
            for twin in by_site.get(item.site, ()):
                if item.at != twin.at and item.left != twin.left and not redrawn and not exact:
                    continue  # which of its times a short number is, is not known otherwise
                if (item.site, item.at, item.process) in self._used and not redrawn:
                    continue
                if self._sure(item, twin, pair, lines, of_measure=of_measure):
                    self._used.add((item.site, item.at, item.process))
                    return True
        return False

    def _sure(
        self, item: Item, twin: Item, pair: tuple[Token, Token], lines: Sequence[str], *, of_measure: bool
    ) -> bool:
        """Return whether it is more than chance that a number is one of those that a place gave."""
        if item.site[0] == "text" or pair[0].kind == "lasting":
            return True
        if min(_digits(token.text) for token in pair) >= EXACT:
            return True
        # One of one or two digits is near a few by chance, unless the words beside it speak of a measure.
        short = min(_digits(token.text) for token in pair) < _SHORT
        if max(item.at + item.left, twin.at + twin.left) < FEW and (of_measure or not short):
            return True
        return (of_measure or not short) and self._each(item.site, pair, lines)

    def _each(self, site: SiteKey, pair: tuple[Token, Token], lines: Sequence[str]) -> bool:
        """Return whether in each line of that form the number at that place is one of a site's, in order."""
        numbers = [_NUMBER.findall(line) for line in lines]
        places = [
            at
            for at, texts in enumerate(zip(*numbers, strict=False))
            if texts == tuple(token.text for token in pair)
        ]
        return any(self._all_of(site, lines, at) for at in places)

    def _all_of(self, site: SiteKey, lines: Sequence[str], at: int) -> bool:
        for side, line, slots in zip(self._sides, lines, self._slots, strict=True):
            alike, last = slots.get(_template(line), [])[:_MOST_ALIKE], -1
            if len(alike) < _ALIKE:
                return False
            for each in alike:
                given = _NUMBER.findall(each)[at]
                turns = [item.at for item in _measured(given, side) if item.site == site and item.at > last]
                if not turns:
                    return False
                last = min(turns)
        return True


_CR = "\r"
_COUNTED = ("number", "lasting")
_LASTING = re.compile(r"\d+:\d\d(?::\d\d)?(?:\.\d+)?")
_NUMBERED = re.compile(r"<([a-z ]+) \d+>")
_SINGLE = range(7, 10)
"""Digits of a number that was rounded to single precision, as in TensorBoard's files."""
_SHORT = 3
_MEASURE = re.compile(
    r"time(?!nt|dia|ter)|took|elapsed|duration|second(?!ar)|latency|speed|memory|mem\b|fps|\beta\b"
    r"|throughput|per_sec",  # no sentiment, no multimedia, no centimeters, nothing secondary
    re.IGNORECASE,
)
_UNIT = re.compile(
    r" ?(?:[nuµm]?s|secs?|seconds?|m|min|mins|minutes?|h|hours?|[kKMG]i?B?|%|fps|[^\W\d_]*/s|s/[^\W\d_]*)"
    r"(?![^\W\d_]| *[=:])",
    re.IGNORECASE,
)
_TEMPORARY = 8
"""Characters that tempfile draws."""
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_ALIKE, _MOST_ALIKE = 3, 200


def _template(line: str) -> str:
    return re.sub(r"\s+", " ", _NUMBER.sub("#", line))


def _templates(lines: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        found[_template(line)].append(line)
    return found


def _is_of_measure(line: Sequence[Token], at: int) -> bool:
    """Return whether the words before a number, or the unit behind it, say that it is measured."""
    after = "".join(token.text for token in line[at + 1 : at + 6])
    return _UNIT.match(after) is not None or _MEASURE.search(_words_before(line, at)) is not None


def _words_before(line: Sequence[Token], at: int) -> str:
    """Return the text since the number before; of one in brackets, also what stands before that number."""
    text = ""
    while True:
        first = at
        while first and line[first - 1].kind not in _COUNTED and not line[first - 1].key:
            first -= 1
        between = "".join(token.text for token in line[first:at])
        text, at = between + text, first - 1
        if not first or sum(map(between.count, "([")) <= sum(map(between.count, ")]")):
            return text


def _goes_with(line: Sequence[Token], at: int, measured: set[int], *, redrawn: bool) -> bool:
    """Return whether a word or a space changes with a measured number: its unit, its padding, its bar."""
    token = line[at]
    if redrawn and (token.text in _BAR or token.kind == "space"):
        return True
    before = at - 1
    while before >= 0 and (line[before].kind == "space" or line[before].text in _UNITS):
        before -= 1
    return (token.kind == "space" and at + 1 in measured) or (
        (token.kind == "space" or token.text in _UNITS) and before in measured
    )


def _regions(a: list[Token], b: list[Token]) -> list[tuple[range, range]]:
    """Return the pieces of two lines that differ, side by side."""
    shapes = [[t.text if t.kind in ("word", "other") else t.kind for t in side] for side in (a, b)]
    found = []
    for name, i, j, k, m in SequenceMatcher(None, shapes[0], shapes[1], autojunk=False).get_opcodes():
        if name == "equal":
            alike = zip(range(i, j), range(k, m), strict=True)
            found += [(range(x, x + 1), range(y, y + 1)) for x, y in alike if a[x].text != b[y].text]
        else:
            found.append((range(i, j), range(k, m)))
    return found
