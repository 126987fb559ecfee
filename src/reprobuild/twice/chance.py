"""How likely it is that numbers of two runs' output are like measured ones by chance. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice, product
from math import inf, lgamma, log

from .derived_items import Item
from .text_tokens import digits

OF_PAIR = (0.03, 0.1)
"""How many pairs of values may be like two numbers by chance; the second where words speak of a measure."""
_OF_COLUMN = 1e-3
HARDLY = log(1e-5)
"""The logarithm of what is hardly by chance, for numbers of one or two digits without a word for them."""
_MOST_STEPS = 100_000


def of_pair(texts: Sequence[str], found: Sequence[Sequence[Sequence[Item]]], many: int) -> float:
    """Return how many pairs of values, at one turn of a place in each run, are like both numbers by chance.

    ``texts`` are the numbers, one a run. ``found``: for each of them the values like it, in both runs, among
    these the one that it may be. ``many``: how many values of that size a run has. Each of the digits is
    taken to be as likely, or as many values to be like a number as there are beside that one.
    """
    chance = 2.0 * many  # turns are counted from the first on, and from the last back
    for text, of_runs in zip(texts, found, strict=True):
        alike = sum(len({_origin(item) for item in each}) for each in of_runs) - 1
        chance *= min(1.0, max(alike / (2 * many), 1 / (0.9 * 10 ** digits(text))))
    return chance


def _origin(item: Item) -> tuple[object, ...]:
    """Return what is equal where several places wrote a number, and where it is known in several ways."""
    return (item.value, item.at) if item.site[0] == "text" else (*item.site[1:3], item.at)


def are_a_column(joint: Sequence[Sequence[int]], turns: int, likely: float = 0.0) -> bool:
    """Return whether the numbers of a column are a place's, each at a later turn, and hardly so by chance.

    ``joint``: for each line, those of the ``turns`` whose values are like its numbers in both runs, from the
    first on. The chance is at most that of each line, times the number of ways to choose the turns: a start
    and a step, as where each line has as many numbers; or any that increase. Of few turns in a row each
    column of numbers of few digits could be chosen. ``likely`` is the logarithm of the product of what
    `of_pair` gives for each of its different pairs, which is small for numbers of more digits.
    """
    each = sum(log(len(line) / turns) for line in joint)
    lines, limit = len(joint), log(_OF_COLUMN)
    if each + 2 * log(turns) < limit and _at_even_steps(joint):
        return True
    ways = lgamma(turns + 1) - lgamma(lines + 1) - lgamma(max(turns - lines, 0) + 1)
    return min(each + ways, likely) < limit and increase(joint)


def _at_even_steps(joint: Sequence[Sequence[int]]) -> bool:
    turns = [frozenset(line) for line in joint]
    return any(
        second > first and all(first + (second - first) * at in line for at, line in enumerate(turns))
        for first, second in islice(product(joint[0], joint[1]), _MOST_STEPS)
    )


def increase(joint: Sequence[Sequence[int]]) -> bool:
    """Return whether there is a turn for each line that comes after that of the line before."""
    last = -inf
    for line in joint:
        later = bisect_right(line, last)
        if later == len(line):
            return False
        last = line[later]
    return True
