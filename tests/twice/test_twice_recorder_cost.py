"""What the recorder costs, from the times of steps with it and without."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from reprobuild.twice.recorder_cost import measured
from reprobuild.twice.records import Moment, Stream


def timed(walls: Sequence[float], kinds: Sequence[str] = ()) -> Stream:
    stream = Stream(rank="", worker="", process="MainProcess", argv=("train.py",), values=Path("none"))
    for number, wall in enumerate(walls):
        stream.moments.append(
            Moment(
                kind=kinds[number] if kinds else "step",
                label="",
                number=number,
                parts=(),
                names={},
                losses=(),
                sample=(),
                wall=wall,
                spent=0.0,
            )
        )
    return stream


def test_medians_are_compared_and_the_first_step_is_left_out() -> None:
    found = measured(
        [[timed([9.0, 1.1, 1.1, 7.0])], [timed([8.0, 1.1, 1.1, 1.1])]], [timed([5.0, 1.0, 1.0])], 1
    )
    assert found is not None
    assert (found.recorded, found.plain, found.steps) == (1.1, 1.0, 6)
    assert found.percent == pytest.approx(10)


def test_what_comes_between_two_steps_counts() -> None:
    kinds = ("start", "step", "call", "step", "call", "step")
    found = measured([[timed([3.0, 1.0, 0.5, 1.0, 0.5, 1.0], kinds)]], [timed([1.0, 1.0, 1.0])], 1)
    assert found is not None
    assert found.percent == pytest.approx(50)


def test_of_every_third_step_compared_the_three_are_taken_together() -> None:
    recorded = timed([9.0, *(1.0, 1.0, 1.6) * 3])
    found = measured([[recorded]], [timed([1.0] * 10)], 3)
    assert found is not None
    assert (found.steps, round(found.percent)) == (9, 20)


@pytest.mark.parametrize(
    ("walls", "plain"), [([1.0], [1.0, 1.0]), ([1.0, 1.0], [1.0]), ([], []), ([1, 1], [1, 0])]
)
def test_too_few_steps_are_no_measurement(walls: list[float], plain: list[float]) -> None:
    assert measured([[timed(walls)]], [timed(plain)], 1) is None
