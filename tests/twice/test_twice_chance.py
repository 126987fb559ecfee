"""How likely numbers are like measured ones by chance."""

from __future__ import annotations

import random

import pytest

from reprobuild.twice.chance import OF_PAIR, are_a_column, of_pair
from reprobuild.twice.derived_items import Item


def at(turn: int, text: str, line: int = 3) -> Item:
    return Item(("text", "train.py", line, 0), text, turn, 0)


@pytest.mark.parametrize(
    ("texts", "alike", "many", "likely"),
    [
        (("0.42", "0.57"), 1, 1, False),
        (("0.42", "0.57"), 1, 100, False),  # each of the 100 could be any of 90
        (("0.42", "0.57"), 9, 100, True),
        (("4", "5"), 1, 1, False),
        (("4", "5"), 1, 2, True),
        (("0.4217", "0.5709"), 1, 900, False),
    ],
)
def test_a_pair(texts: tuple[str, str], alike: int, many: int, *, likely: bool) -> None:
    found = [[[at(turn, text) for turn in range(alike)], []] for text in texts]
    assert (of_pair(texts, found, many) > OF_PAIR[0]) == likely


def test_a_number_that_two_places_wrote_counts_once() -> None:
    once, twice = ([[[at(0, text, line) for line in range(n)], []] for text in ("4", "5")] for n in (1, 2))
    assert of_pair(("4", "5"), once, 1) == of_pair(("4", "5"), twice, 1)


def test_of_few_lines_any_column_could_be_chosen() -> None:
    assert not are_a_column([[0, 4], [5, 7], [8, 11]], 12)
    assert are_a_column([[number, number + 1] for number in range(12)], 12)
    assert not are_a_column([[0], [1], [0]] * 4, 12)


def test_a_column_has_a_number_of_each_line_that_has_several() -> None:
    """A line that is formatted at one place has as many turns as numbers."""
    column = [[6 * number + 4, *range(60, 68)] for number in range(12)]
    assert are_a_column(column, 72)
    column[7] = [5, *range(60, 68)]
    assert not are_a_column(column, 72)


def test_the_bound_holds_for_columns_that_are_drawn() -> None:
    """Of 20 lines, beside 30 turns of 8 numbers."""
    draw = random.Random(1)
    found = 0
    for _ in range(2000):
        turns = [(draw.randrange(8), draw.randrange(8)) for _ in range(30)]
        pairs = [(draw.randrange(8), draw.randrange(8)) for _ in range(20)]
        joint = [[turn for turn, each in enumerate(turns) if each == pair] for pair in pairs]
        found += all(joint) and are_a_column(joint, 30)
    assert found == 0
