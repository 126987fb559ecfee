"""Tests of a number that differs."""

from __future__ import annotations

import pytest

from reprobuild.twice.derived_items import Item
from reprobuild.twice.differing_number import DifferingNumber, turns_of_row
from reprobuild.twice.evidence import Evidence
from reprobuild.twice.text_tokens import Token


def number(pair: tuple[str, str], *, of_measure: bool = False, line: str = "loss %s") -> DifferingNumber:
    kind = "lasting" if ":" in pair[0] else "number"
    tokens = (Token(kind, pair[0], ""), Token(kind, pair[1], ""))
    return DifferingNumber(tokens, (line % pair[0], line % pair[1]), redrawn=False, of_measure=of_measure)


@pytest.mark.parametrize(
    ("pair", "of_measure", "doubtful"),
    [
        (("0.0060", "0.0061"), False, True),
        (("0.0060", "0.0061"), True, False),
        (("0.1234", "0.8765"), False, False),
        (("0.1234", "0.9"), False, True),
        (("1:02:03.456789", "1:02:03.456788"), False, True),
    ],
)
def test_it_may_be_a_measured_one_by_chance(pair: tuple[str, str], of_measure: bool, doubtful: bool) -> None:
    assert number(pair, of_measure=of_measure).doubtful == doubtful


def test_it_is_known_again_by_the_words_before_it_and_its_place() -> None:
    found = number(("0.5", "0.7"), line="of 3 took %s")
    assert found.told == ("0.5", "0.7", "of#took ", "of#took ")
    assert found.places == [1]
    assert found.least == 1
    assert not found.again


def test_a_long_number_tells_at_which_turn_a_row_was_made() -> None:
    site, other = ("value", "train.py", 3, 0), ("value", "train.py", 9, 0)
    sides = [
        Evidence(items=[Item(site, value, at, 1 - at) for at, value in enumerate(values)])
        for values in ((1.234567, 2.345678), (3.456789, 1.122334))
    ]
    row, same, short = (
        [(Token("number", one, ""), Token("number", two, ""))]
        for one, two in (("2.345678", "3.456789"), ("2.345678", "1.122334"), ("2.3456", "3.4567"))
    )
    assert turns_of_row(row, sides) == {(0, 1): (0, 0)}
    assert turns_of_row(same, sides) == {}
    assert turns_of_row(short, sides) == {}
    twice = [Evidence(items=[*sides[0].items, Item(other, 2.345678, 0, 0)]), sides[1]]
    assert turns_of_row(row, twice) == {}
