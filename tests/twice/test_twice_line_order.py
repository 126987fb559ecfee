"""Which lines of two runs belong together."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprobuild.twice.derived_items import Item
from reprobuild.twice.evidence import Evidence
from reprobuild.twice.line_order import keep_their_order, matched, turns
from reprobuild.twice.text_differences import Texts

SIDES = (Evidence(), Evidence())


def test_lines_of_ranks_are_told_apart_by_what_both_have() -> None:
    """As in PyTorch's ImageNet example, where each of two ranks prints its own part of the test."""
    form = "Test: [1/4]  Time {} ( {})  Loss {} ({})"
    one = [form.format(0.005, 0.005, loss, loss) for loss in ("1.0578e+00", "1.6710e+00")]
    other = [
        form.format(time, time, loss, loss) for time, loss in ((0.004, "1.6710e+00"), (0.009, "1.0578e+00"))
    ]
    assert matched(one, other, SIDES) == [(one[0], other[1]), (one[1], other[0])]


_LINES = st.lists(st.sampled_from(["loss 1", "loss 2", "epoch 1 loss 2", "ended", ""]), max_size=6)


@given(_LINES, st.randoms())
def test_the_same_lines_are_matched_in_any_order(lines: list[str], draws: random.Random) -> None:
    other = list(lines)
    draws.shuffle(other)
    assert not matched(lines, other, SIDES)  # none is left over
    assert keep_their_order(lines, other, SIDES) == (lines == other)


@given(_LINES, _LINES)
def test_each_line_that_differs_is_in_one_pair(one: list[str], other: list[str]) -> None:
    size = min(len(one), len(other))
    pairs = matched(one[:size], other[:size], SIDES)
    left, right = (sorted(pair[side] for pair in pairs) for side in (0, 1))
    assert not set(left) & set(right)
    assert all(line in one for line in left)
    assert all(line in other for line in right)


def test_how_many_have_ended_does_not_tell_lines_apart() -> None:
    one = ["[1/3] fold 3", "[2/3] fold 4", "[3/3] fold 5"]
    other = ["[1/3] fold 4", "[2/3] fold 5", "[3/3] fold 3"]
    assert matched(one, other, SIDES) == [(one[0], other[2]), (one[1], other[0]), (one[2], other[1])]


def test_a_number_that_a_clock_gave_by_chance_tells_lines_apart_still() -> None:
    sides = (Evidence(items=[Item(("text", "a.py", 7, 0), "0.02", 0, 0)]), Evidence())
    one = ["beta 0.02 took 3.94 s", "beta 0.04 took 0.11 s"]
    other = ["beta 0.04 took 0.12 s", "beta 0.02 took 4.05 s"]
    assert matched(one, other, sides) == [(one[0], other[1]), (one[1], other[0])]


@pytest.mark.parametrize(("form", "known"), [("[{}/3] {} took {} s", True), ("{}. {} took {} s", False)])
def test_how_many_have_ended_is_no_result_and_a_rank_is_one(form: str, known: bool) -> None:
    times = {"a": ("0.11", "0.31"), "b": ("0.42", "0.25"), "c": ("0.56", "0.77")}
    lines = [
        [form.format(at, name, times[name][run]) for at, name in enumerate(order, 1)]
        for run, order in enumerate(("abc", "cab"))
    ]
    sides = [
        Evidence(
            several=True,
            items=[Item(("text", f"{name}.py", 7, 0), both[run], 0, 0) for name, both in times.items()],
        )
        for run in (0, 1)
    ]
    number, found = Texts(sides[0], sides[1]).compare(lines[0], lines[1], "standard output", many=False)
    assert (number is None) == known, found
    assert bool(turns(lines[0], lines[1])) == known
