"""How likely it is that numbers of two runs' output are like measured ones by chance. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import lgamma, log

from .evidence import Item
from .text_tokens import digits

OF_PAIR = (0.03, 0.1)
"""How many pairs of values may be like two numbers by chance; the second where words speak of a measure."""
_OF_COLUMN = 1e-3


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


def are_a_column(alike: Sequence[int], turns: int) -> bool:
    """Return whether the numbers of a column are hardly those of a place's increasing turns by chance.

    ``alike``: for each line, at how many of the ``turns`` the values are like its numbers in both runs. The
    chance is at most that of each line, times the number of ways to choose so many turns.
    """
    lines = len(alike)
    each = sum(log(many / turns) for many in alike)
    ways = lgamma(turns + 1) - lgamma(lines + 1) - lgamma(max(turns - lines, 0) + 1)
    return each + ways < log(_OF_COLUMN)
