"""Which lines of two runs belong together where their order is no result. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

from .evidence import Evidence
from .line_forms import NUMBER, outline, template
from .text_tokens import general

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
