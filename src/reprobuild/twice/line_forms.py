"""The form of a line: its words without its numbers, and what the words say of a number. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache

from .text_tokens import Token

UNITS = frozenset(
    (
        *("ns", "us", "µs", "ms", "s", "sec", "secs", "second", "seconds", "m", "min", "mins", "minute"),
        *("minutes", "h", "hr", "hrs", "hour", "hours", "d", "day", "days", "k", "K", "M", "G", "/", "it"),
    )
)
"""Words that change with the size of a duration or a speed."""
BAR = frozenset("█▉▊▋▌▍▎▏#")
"""Characters of a progress bar, whose length changes with the digits of the speed beside it."""
FILLING = "━"
"""What a bar is made of that fills what the numbers beside it leave of a line, as Rich draws it."""
_NEAR = 2000
"""Characters before a number in which its words are."""
_LEAST_COLUMNS = 3
_MOST_ROWS = 200
_MOST_PAIRS = 1_000_000
"""Words of two lines, multiplied, up to which they are put side by side where their kinds differ."""
_CORNERS = ("┏┓", "┡┩", "┗┛", "└┘", "┌┐", "├┤", "╭╮", "╰╯", "╔╗", "╚╝", "╠╣")
_HORIZONTAL = "━┳╇┻─┴┬┼═╦╩╬"
_ONE_EACH = re.compile("([━─═])[━─═]+")
COUNTED = ("number", "lasting")
_MEASURE = re.compile(  # no sentiment, no multimedia, no centimeters, nothing secondary, no wallet
    r"time(?!nt|dia|ter|_?step)|took|elapsed|duration|second(?!ar)|latency|speed|memory|mem\b|fps|\beta\b"
    r"|throughput|per_sec|(?<![^\W_])(?:wall|cpu)(?![^\W_])",
    re.IGNORECASE,
)
_UNIT = re.compile(
    r" ?(?:[nuµm]?s|secs?|seconds?|m|min|mins|minutes?|h|hours?|[kKMG]i?B?|%|fps|[^\W\d_]*/s|s/[^\W\d_]*)"
    r"(?![^\W\d_]| *[=:])",
    re.IGNORECASE,
)
_SIGNS = ("+", "-")
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


@lru_cache(maxsize=64)  # asked for again for each number of a line
def template(line: str) -> str:
    """Return the form of a line, without the spaces that numbers are aligned by."""
    return re.sub(r"\s*#\s*", "#", re.sub(r"\s+", " ", NUMBER.sub("#", line)))


@lru_cache(maxsize=64)
def outline(line: str) -> str:
    """Return the form of a line of a table, whose words differ from row to row."""
    return re.sub(r"w[w ]*", "w", re.sub(r"[^\W\d_]+", "w", template(line)).replace("-#", "#"))


def by_form(lines: Sequence[str]) -> dict[str, list[str]]:
    """Return the lines of each form, which may be that of a line itself or of a row of a table."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        for form in {template(line), outline(line)}:
            found[form].append(line)
    return found


def is_of_measure(line: Sequence[Token], at: int) -> bool:
    """Return whether the words before a number, or the unit behind it, say that it is measured.

    A whole number behind a letter is a part of a name, as in cpu.commitStats0.
    """
    if at and line[at].text.isdecimal() and line[at - 1].kind == "word":
        return False
    after = "".join(token.text for token in line[at + 1 : at + 6])
    return _UNIT.match(after) is not None or _MEASURE.search(_words_before(line, at)) is not None


def goes_with(line: Sequence[Token], at: int, measured: set[int], *, redrawn: bool) -> bool:
    """Return whether a word or a space changes with a measured number: its unit, its padding, its bar."""
    token = line[at]
    if token.text in _SIGNS and at + 1 in measured:  # of a difference of two times
        return True
    if redrawn and (token.text in BAR or token.kind == "space"):
        return True
    before = at - 1
    while before >= 0 and (line[before].kind == "space" or line[before].text in UNITS):
        before -= 1
    return (token.kind == "space" and at + 1 in measured) or (
        (token.kind == "space" or token.text in UNITS) and before in measured
    )


def said(line: str, token: Token) -> str:
    """Return the words before a number that is written once or more in a line, without other numbers."""
    return template(line.partition(token.text)[0][-_NEAR:])[-40:]


def _words_before(line: Sequence[Token], at: int) -> str:
    """Return the text since the number before; of one in brackets, also what stands before that number."""
    text = ""
    while True:
        first = at
        while first and line[first - 1].kind not in COUNTED and not line[first - 1].key:
            first -= 1
        between = "".join(token.text for token in line[first:at])
        text, at = between + text, first - 1
        if not first or sum(map(between.count, "([")) <= sum(map(between.count, ")]")):
            return text


def commas_of(head: str) -> int:
    """Return how many commas each row of a table with such a first line has; 0 of another text."""
    names = head.split(",")
    is_table = len(names) >= _LEAST_COLUMNS and not any(each[:1].isdigit() for each in names)
    return len(names) - 1 if is_table and '"' not in head else 0


def columns_of_measure(head: str) -> frozenset[int]:
    """Return which columns of a table with commas are called by a word of measure in its first line."""
    names = head.split(",") if commas_of(head) else []
    return frozenset(at for at, name in enumerate(names) if _MEASURE.search(name.rpartition("/")[2]))


def column_of(line: Sequence[Token], at: int) -> int:
    """Return in which column of a table with commas a number stands; -1 where quotes make it unsure."""
    before = "".join(token.text for token in line[:at])
    alone = (at == 0 or line[at - 1].text in (",", "-")) and (at + 1 == len(line) or line[at + 1].text == ",")
    return before.count(",") if alone and '"' not in before else -1


def is_layout(one: Sequence[str], other: Sequence[str], at: int) -> bool:
    """Return whether a line is a table's border that is as long as its numbers, or a title beside it.

    Also one that differs in spaces alone, beside lines that differ in what makes a column wider: these count.
    """
    a, b = one[at], other[at]
    if _is_border(a) and _is_border(b):
        return _ONE_EACH.sub(r"\1", a.strip()) == _ONE_EACH.sub(r"\1", b.strip())
    if a.split() != b.split() or not a.split():
        return False
    if any(_is_wider(one, other, range(*each)) for each in ((at + 1, len(one)), (at - 1, -1, -1))):
        return True
    if any(map(str.isdigit, a)) or not any(map(str.isalpha, a)):
        return False
    beside = [(one[to], other[to]) for to in (at - 1, at + 1) if 0 <= to < min(len(one), len(other))]
    return any(x != y and _is_border(x) and _is_border(y) for x, y in beside)


_BY_TIME = tuple(
    tuple(map(re.compile, forms))
    for forms in (
        (r"real\t\d+m\d+[.,]\d+s", r"user\t\d+m\d+[.,]\d+s", r"sys\t\d+m\d+[.,]\d+s"),  # Bash's
        (r"real \d+[.,]\d+", r"user \d+[.,]\d+", r"sys \d+[.,]\d+"),  # POSIX, time -p
        (
            r"\d+\.\d+user \d+\.\d+system [\d:.]+elapsed \d+%CPU \(\d+avgtext\+\d+avgdata \d+maxresident\)k",
            r"\d+inputs\+\d+outputs \(\d+major\+\d+minor\)pagefaults \d+swaps",
        ),  # GNU's
    )
)
"""The lines that the command ``time`` writes, all of which stand together."""


def is_told_by_time(one: Sequence[str], other: Sequence[str], at: int) -> bool:
    """Return whether a line is one of those that the command ``time`` writes, in both runs."""
    for forms in _BY_TIME:
        for first in range(max(0, at - len(forms) + 1), at + 1):
            both = [lines[first : first + len(forms)] for lines in (one, other)]
            if all(
                len(lines) == len(forms)
                and all(form.fullmatch(line) for form, line in zip(forms, lines, strict=False))
                for lines in both
            ):
                return True
    return False


def _is_wider(one: Sequence[str], other: Sequence[str], numbers: range) -> bool:
    """Return whether one of these lines, up to an empty one, has other words of another length."""
    for at in numbers[:_MOST_ROWS]:
        if at >= len(other) or not (one[at].split() and other[at].split()) or _is_border(one[at]):
            return False
        if one[at].split() != other[at].split() and len(one[at].strip()) != len(other[at].strip()):
            return True
    return False


def _is_border(line: str) -> bool:
    line = line.strip()
    return f"{line[:1]}{line[-1:]}" in _CORNERS and not line[1:-1].strip(_HORIZONTAL)


def regions_apart(a: list[Token], b: list[Token]) -> list[tuple[range, range]]:
    """Return the pieces of two lines that differ, side by side."""
    shapes = [[t.text if t.kind in ("word", "other") else t.kind for t in side] for side in (a, b)]
    if shapes[0] == shapes[1]:  # as most lines are, and much faster
        return [(range(x, x + 1), range(x, x + 1)) for x in range(len(a)) if a[x].text != b[x].text]
    long = len(a) * len(b) > _MOST_PAIRS
    start = _common(*shapes) if long else 0
    end = 0 if not long else min(_common(shapes[0][::-1], shapes[1][::-1]), min(map(len, shapes)) - start)
    middle = [side[start : len(side) - end] for side in shapes]
    found: list[tuple[int, int, int, int]] = [(0, start, 0, start)]
    if len(middle[0]) * len(middle[1]) <= _MOST_PAIRS:
        matches = SequenceMatcher(None, middle[0], middle[1], autojunk=False).get_matching_blocks()
        found += [
            (start + i, start + i + size, start + k, start + k + size) for i, k, size in matches if size
        ]
    found.append((len(a) - end, len(a), len(b) - end, len(b)))
    regions, left, right = [], 0, 0
    for i, j, k, m in found:
        if i > left or k > right:
            regions.append((range(left, i), range(right, k)))
        alike = zip(range(i, j), range(k, m), strict=True)
        regions += [(range(x, x + 1), range(y, y + 1)) for x, y in alike if a[x].text != b[y].text]
        left, right = j, m
    return regions


def zeros_behind_signs(
    lines: Sequence[Sequence[Token]], region: tuple[range, range]
) -> list[tuple[int, int]]:
    """Return the place in each line of a number that is rounded to zero, if a piece has but its signs."""
    signs = {"".join(line[at].text for at in each) for line, each in zip(lines, region, strict=True)}
    ends = region[0].stop, region[1].stop
    if not signs <= {*_SIGNS, ""} or any(end >= len(line) for line, end in zip(lines, ends, strict=True)):
        return []
    x, y = lines[0][ends[0]], lines[1][ends[1]]
    is_zero = x.kind in COUNTED and x.text == y.text and not x.text.strip("0.")
    return [ends] if is_zero else []


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many words two lines begin with that are the same."""
    return next(
        (at for at, (x, y) in enumerate(zip(one, other, strict=False)) if x != y), min(len(one), len(other))
    )
