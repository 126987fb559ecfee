"""Which lines of two runs belong together where their order is no result. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

from .evidence import Evidence
from .line_forms import NUMBER, outline, template
from .text_tokens import general

_ROWS = 5
"""Rows whose order by a number is no chance."""
_NUMBERED = re.compile(r"<([a-z ]+) \d+>")
Sides = tuple[Evidence, Evidence]


def matched(one: Sequence[str], other: Sequence[str], sides: Sides) -> list[tuple[str, str]]:
    """Put lines side by side that are equal but for their order, and of the rest those most alike."""
    common = Counter(one) & Counter(other)
    alone: list[list[tuple[str, str]]] = []
    for side, lines in zip(sides, (one, other), strict=True):
        left = Counter(common)
        alone.append([])
        for line in lines:
            if left[line]:
                left[line] -= 1
            else:
                alone[-1].append((_NUMBERED.sub(r"<\1>", general(line, side, numbers=False)), line))
    counts = turns([meant for meant, _ in alone[0]], [meant for meant, _ in alone[1]])
    groups: dict[str, tuple[list[tuple[str, str]], list[tuple[str, str]]]] = defaultdict(lambda: ([], []))
    for at, read in enumerate(alone):
        for meant, line in read:
            groups[template(meant)][at].append((meant, line))
    ordered = [_in_one_order(groups[form], counts) for form in sorted(groups)]
    first, second = ([line for both in ordered for line in both[side]] for side in (0, 1))
    return list(zip(first, second, strict=True))


def turns(one: Sequence[str], other: Sequence[str]) -> frozenset[tuple[str, int]]:
    """Return the places of lines of a form at which both runs count them as in 3/24, whichever comes when.

    A number without the sum behind it may be a rank, which is a result.
    """
    counted = []
    for lines in (one, other):
        found: dict[tuple[str, int], list[str]] = defaultdict(list)
        for line in lines:
            form = outline(line)
            for at, number in enumerate(NUMBER.findall(line)):
                found[form, at].append(number)
        counted.append(found)
    return frozenset(
        place
        for place, numbers in counted[0].items()
        if len(numbers) > 1
        and numbers == counted[1].get(place)
        and _counts(numbers)
        and place[0].split("#")[place[1] + 1] == "/"
    )


def _counts(numbers: Sequence[str]) -> bool:
    return all(map(str.isdecimal, numbers)) and all(
        int(after) == int(before) + 1 for before, after in pairwise(numbers)
    )


def _in_one_order(
    group: tuple[list[tuple[str, str]], list[tuple[str, str]]], counts: frozenset[tuple[str, int]]
) -> list[list[str]]:
    """Return the lines of each run, first by the numbers at places that have the same ones in both.

    Such a place tells the lines apart, and one with times or that counts the lines does not.
    """
    numbers = [[NUMBER.findall(meant) for meant, _ in lines] for lines in group]
    many = {len(each) for lines in numbers for each in lines}
    kept: list[int] = []
    if len(many) == 1 and all(numbers):
        form = outline(group[0][0][0])
        columns = [list(zip(*lines, strict=True)) for lines in numbers]
        kept = [
            at
            for at in range(*many)
            if Counter(columns[0][at]) == Counter(columns[1][at]) and (form, at) not in counts
        ]
    found = []
    for read, lines in zip(numbers, group, strict=True):
        keys = [([each[at] for at in kept], *line) for each, line in zip(read, lines, strict=True)]
        found.append([line for *_, line in sorted(keys)])
    return found


def keep_their_order(one: Sequence[str], other: Sequence[str], sides: Sides) -> bool:
    """Return whether the lines that both runs wrote come in the same order, but for those with a measured
    or drawn value: such a line tells when something happened.
    """
    common = Counter(one) & Counter(other)
    plain = []
    for side, lines in zip(sides, (one, other), strict=True):
        left, found = Counter(common), []
        for line in lines:
            if left[line]:
                left[line] -= 1
                if general(line, side) == line:
                    found.append(line)
        plain.append(found)
    return plain[0] == plain[1]


def rows_in_one_order(one: Sequence[str], other: Sequence[str]) -> list[str] | None:
    """Return the lines of the other run in the order of this one's, where these are rows of a table that both
    runs have sorted by a number which differs, as a profiler sorts its rows by time. None: they are not.

    Whether that number is a time is not known here.
    """
    if len(one) != len(other):
        return None
    found = list(other)
    words = [template(line) for line in one], [template(line) for line in other]
    at = 0
    while at < len(one):
        if words[0][at] == words[1][at]:
            at += 1
            continue
        end = _end_of_permutation(*words, at)
        where = {form: number for number, form in enumerate(words[1][at:end], at)}
        if len(where) < end - at or not _are_sorted((one, other), words, (at, end)):
            return None  # several rows are alike, or they are not sorted by a number
        found[at:end] = [other[where[form]] for form in words[0][at:end]]
        at = end
    return found


def _end_of_permutation(one: Sequence[str], other: Sequence[str], first: int) -> int:
    """Return where the same forms have come in both, from one that differs; `first` if they never have."""
    missing = Counter[str]()
    for at in range(first, len(one)):
        for form, sign in ((one[at], 1), (other[at], -1)):
            missing[form] += sign
            if not missing[form]:
                del missing[form]
        if not missing:
            return at + 1
    return first


def _are_sorted(
    lines: tuple[Sequence[str], Sequence[str]],
    words: tuple[Sequence[str], Sequence[str]],
    rows: tuple[int, int],
) -> bool:
    """Return whether some rows, with those around them, are sorted by a number of which most differ."""
    first, end = rows
    if first == end:
        return False
    inside = [[NUMBER.findall(line) for line in side[first:end]] for side in lines]
    for column in range(1, min(len(numbers) for side in inside for numbers in side) + 1):
        values = [[float(numbers[-column]) for numbers in side] for side in inside]
        for sign in (-1, 1):
            if not all(_grows(sign, side) for side in values):
                continue
            told = [
                dict(zip(each[first:end], side, strict=True))
                for each, side in zip(words, values, strict=True)
            ]
            differing = sum(told[1][form] != value for form, value in told[0].items())
            if 2 * differing >= end - first and _with_more(lines, rows, (column, sign), values) >= _ROWS:
                return True
    return False


def _grows(sign: int, values: Sequence[float]) -> bool:
    return all(sign * a <= sign * b for a, b in pairwise(values))


def _with_more(
    lines: tuple[Sequence[str], Sequence[str]],
    rows: tuple[int, int],
    order: tuple[int, int],
    values: Sequence[Sequence[float]],
) -> int:
    """Return how many rows there are with those before and behind that are in the same order in both runs."""
    first, end = rows
    column, sign = order
    found = end - first
    for step, edge in ((-1, first), (1, end - 1)):
        edges = [side[edge - first] for side in values]
        at = edge + step
        while 0 <= at < len(lines[0]) and found < _ROWS:
            numbers = [NUMBER.findall(side[at]) for side in lines]
            if any(len(each) < column for each in numbers):
                break
            more = [float(each[-column]) for each in numbers]
            if not all(sign * step * a <= sign * step * b for a, b in zip(edges, more, strict=True)):
                break
            edges, at, found = more, at + step, found + 1
    return found
