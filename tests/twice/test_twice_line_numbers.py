"""Tests of the numbers of a line, and of what it is without them."""

from __future__ import annotations

import pytest

from reprobuild.twice.line_numbers import bounds_of, by_shape, in_one_unit, line_numbers, shape_of


@pytest.mark.parametrize(
    ("line", "texts", "seconds"),
    [
        ("epoch 3 took 1.5 ms", ["3", "1.5"], [0.0, 1e-3]),
        ("total 2,770.855 us", ["2770.855"], [1e-6]),
        ("run 0123456789abcdef01 loss -0.25", ["0.25"], [0.0]),
        ("ETA 1:02:03", ["1:02:03"], [0.0]),
        ("188us/step", ["188"], [1e-6]),
    ],
)
def test_numbers_have_their_units(line: str, texts: list[str], seconds: list[float]) -> None:
    found = line_numbers(line)
    assert [each.text for each in found] == texts
    assert [each.seconds for each in found] == seconds


def test_numbers_of_several_units_are_put_in_one() -> None:
    assert in_one_unit([line_numbers(each)[0] for each in ("0.1s", "1.8min")]) == ["0.1", "108.0"]
    assert in_one_unit([line_numbers(each)[0] for each in ("4.0it/s", "2.0s/it")]) == ["0.250000", "2.000000"]


def test_a_line_is_known_by_what_it_is_without_its_numbers() -> None:
    assert shape_of("fold 3 took 1.8 min") == shape_of("fold 12 took 0.1 s") != shape_of("fold 3 of 12")
    assert by_shape(["a 1", "b 1", "a 2"]) == {shape_of("a 1"): ["a 1", "a 2"], shape_of("b 1"): ["b 1"]}


def test_a_printed_number_stands_for_a_range() -> None:
    low, high = bounds_of("1.5", 2)
    assert 1.494 < low < 1.495 < 1.505 < high < 1.506
    assert bounds_of("1:30", 0) == (89.0, 91.0)
