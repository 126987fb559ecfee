"""How often a check repeats, and what that would find."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

import reprobuild.in_image.selftest.command_line  # noqa: F401 -- the checks are registered
from reprobuild.in_image.selftest import power
from reprobuild.in_image.selftest.outcomes import Failed


def test_the_power_of_calls_is_that_of_the_binomial_distribution() -> None:
    assert (power.calls_for(1 / 20), power.calls_for(1 / 200)) == (90, 919)
    assert 1 - (1 - power.rate_for(90)) ** 90 == pytest.approx(0.99)


@pytest.fixture
def repeats() -> Iterator[power.Repeats]:
    yield power.REPEATED
    power.REPEATED.set_for("battery")
    power.REPEATED.made = 1


@pytest.mark.parametrize(("mode", "rate"), [("battery", 1 / 20), ("full", 1 / 200)])
def test_a_check_repeats_as_often_as_its_mode_needs(mode: str, rate: float, repeats: power.Repeats) -> None:
    repeats.set_for(mode)
    calls = itertools.count()

    def run() -> dict[str, bytes]:
        next(calls)
        return {"a": b"1"}

    assert power.steady(run) == {"small a": b"1"}
    assert next(calls) == repeats.made
    assert power.rate_for(power.RUNS * repeats.made) <= rate


def test_one_call_that_differs_is_named(repeats: power.Repeats) -> None:
    results = iter([b"1"] * 4 + [b"2"] * 30)
    with pytest.raises(Failed, match="call 5 of 23 differs from the first") as caught:
        power.steady(lambda: {"a": next(results)})
    assert [line["what"] for line in caught.value.detail] == ["a"]
