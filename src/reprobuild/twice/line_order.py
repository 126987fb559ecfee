"""Which lines of two runs belong together where their order is no result. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from .evidence import Evidence
from .line_forms import NUMBER, template
from .text_tokens import general

_NUMBERED = re.compile(r"<([a-z ]+) \d+>")
Sides = tuple[Evidence, Evidence]


def matched(one: Sequence[str], other: Sequence[str], sides: Sides) -> list[tuple[str, str]]:
    """Put lines side by side that are equal but for their order, and of the rest those most alike."""
    common = Counter(one) & Counter(other)
    groups: dict[str, tuple[list[tuple[str, str]], list[tuple[str, str]]]] = defaultdict(lambda: ([], []))
    for side, lines in enumerate((one, other)):
        left = Counter(common)
        for line in lines:
            if left[line]:
                left[line] -= 1
            else:
                meant = _NUMBERED.sub(r"<\1>", general(line, sides[side]))
                groups[template(meant)][side].append((meant, line))
    ordered = [_in_one_order(groups[form]) for form in sorted(groups)]
    first, second = ([line for lines in ordered for line in lines[side]] for side in (0, 1))
    return list(zip(first, second, strict=True))


def _in_one_order(group: tuple[list[tuple[str, str]], list[tuple[str, str]]]) -> list[list[str]]:
    """Return the lines of each run, first by the numbers at places that have the same ones in both.

    Such a place tells the lines apart, and one with times does not.
    """
    numbers = [[NUMBER.findall(meant) for meant, _ in lines] for lines in group]
    many = {len(each) for lines in numbers for each in lines}
    kept: list[int] = []
    if len(many) == 1 and all(numbers):
        columns = [list(zip(*lines, strict=True)) for lines in numbers]
        kept = [at for at in range(*many) if all(Counter(c[at]) == Counter(columns[0][at]) for c in columns)]
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
