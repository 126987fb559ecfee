"""Tests of a number that differs."""

from __future__ import annotations

import pytest

from reprobuild.twice.differing_number import DifferingNumber
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
