"""Tests of numbers that are made of times beside them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis.strategies import integers

from reprobuild.twice.line_numbers import bounds_of
from reprobuild.twice.ratios import Bounds, is_multiple, is_ratio


def each(*texts: str) -> list[Bounds]:
    return [bounds_of(text, len(text.partition(".")[2])) for text in texts]


WHOLE, PART = each("12.34", "13.21", "1243.1", "12507"), each("1.111", "1.302", "103.7", "1420")


@pytest.mark.parametrize(
    ("numbers", "known"),
    [
        (("9.00", "9.86", "8.34", "11.35"), True),  # percent
        (("0.0900", "0.0986", "0.0834", "0.1135"), True),
        (("11.11", "10.15", "11.99", "8.808"), True),  # how many times as long
        (("9.00", "9.86", "8.34", "11.45"), False),
        (("9", "9", "8", "11"), False),  # too few digits to say so
        (("0.812", "0.813", "0.812", "0.812"), False),
    ],
)
def test_a_ratio_of_two_times_is_known_in_all_runs(numbers: tuple[str, ...], known: bool) -> None:
    assert is_ratio(each(*numbers), [WHOLE, PART]) is known
    assert not is_ratio(each(*numbers), [WHOLE])


@given(integers(0, 10**6))
def test_a_result_is_no_ratio_of_many_times(seed: int) -> None:
    """96 times of a text, whose ratios are as dense as they get."""
    of = random.Random(seed)
    times = [each(*(f"{of.uniform(0.5, 2) * pace:.4g}" for pace in (1, 1, 100, 1000))) for _ in range(96)]
    result = of.uniform(0.5, 1.5)
    assert not is_ratio(
        each(f"{result:.2f}", f"{result + 0.03:.2f}", f"{result:.2f}", f"{result:.2f}"), times
    )


def test_so_many_times_a_time_is_known() -> None:
    mean = each("0.0042369", "0.00016319")
    assert is_multiple(each("0.016948", "0.00065278"), [mean])
    assert not is_multiple(each("0.016948", "0.00065378"), [mean])
    assert not is_multiple(each("0.02", "0.0008"), [mean])  # too few digits
    assert not is_multiple(each("0.016948", "0.00065278"), [])
    assert not is_multiple(each("0.016948", "0"), [mean])


def test_a_result_that_hardly_varies_is_no_ratio_of_times_that_hardly_does() -> None:
    """Each is within what two digits leave open, which says nothing of one that is 0.98 or 0.97."""
    wall, busy = each("1.00", "1.02", "101.2", "1013"), each("0.98", "0.99", "99.2", "990")
    assert not is_ratio(each("0.98", "0.97", "0.98", "0.98"), [wall, busy])
    assert not is_multiple(each("0.98", "0.97"), [each("1.00", "0.99")])
