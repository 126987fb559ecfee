"""How likely numbers are like measured ones by chance."""

from __future__ import annotations

import random

import pytest

from reprobuild.twice.chance import OF_PAIR, are_a_column, of_pair
from reprobuild.twice.evidence import Item


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
    assert not are_a_column([2, 2, 2], 12)
    assert are_a_column([2] * 12, 12)
    assert are_a_column([1, 1, 1], 3) == (3**-3 < 1e-3)


def test_the_bound_holds_for_columns_that_are_drawn() -> None:
    """Of 20 lines, beside 30 turns of 8 numbers."""
    draw = random.Random(1)
    found = 0
    for _ in range(2000):
        turns = [(draw.randrange(8), draw.randrange(8)) for _ in range(30)]
        last, alike = -1, list[int]()
        for _ in range(20):
            pair = (draw.randrange(8), draw.randrange(8))
            same = [turn for turn, each in enumerate(turns) if each == pair]
            last = next((turn for turn in same if turn > last), 30)
            if last == 30:
                break
            alike.append(len(same))
        else:
            found += are_a_column(alike, 30)
    assert found == 0
