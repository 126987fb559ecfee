"""Which lines of two runs belong together."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprobuild.twice.derived_items import Item
from reprobuild.twice.evidence import Evidence
from reprobuild.twice.line_order import keep_their_order, matched, rows_in_one_order, turns
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
    sides = (Evidence(items=[Item(("text", "a.py", 7, 0), "0.04", 0, 0)]), Evidence())
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


def table(*rows: tuple[str, int, str]) -> list[str]:
    return [
        "| action | calls | total |",
        *(f"| {name:<9} | {calls} | {total} |" for name, calls, total in rows),
    ]


def test_rows_that_are_sorted_by_a_time_are_compared_by_what_they_tell() -> None:
    """As in the report of Lightning's profiler."""
    first = (("run", 1, "9.5"), ("step", 64, "3.1"), ("wait", 1, "1.5"))
    one = table(*first, ("save", 4, "0.21"), ("load", 4, "0.2"))
    other = table(("run", 1, "9.9"), *first[1:], ("load", 4, "0.24"), ("save", 4, "0.2"))
    assert rows_in_one_order(one, other) == [*other[:4], other[5], other[4]]
    assert rows_in_one_order(one, one) == one
    for rows in (
        table(*first, ("load", 4, "0.2"), ("save", 4, "0.21")),  # not sorted, as this run's are
        table(*first[::-1], ("load", 4, "0.24"), ("save", 4, "0.2")),
        table(*first, ("load", 4, "0.24"), ("load", 4, "0.2")),  # another row
        table(*first, ("load", 4, "0.24")),
    ):
        assert rows_in_one_order(one, rows) is None
    equal = [table(*first, *(("save", 4, "0.2"), ("load", 4, "0.2"))[::step]) for step in (1, -1)]
    assert rows_in_one_order(*equal) is None  # by a number that is the same in both
    few = [table(*each) for each in ((("a", 1, "0.3"), ("b", 1, "0.2")), (("b", 1, "0.4"), ("a", 1, "0.1")))]
    assert rows_in_one_order(*few) is None  # sorted by chance


@given(
    st.lists(st.tuples(st.sampled_from("abcdefg"), st.integers(0, 9)), max_size=8, unique_by=lambda r: r[0]),
    st.randoms(),
)
def test_rows_are_the_same_ones_in_another_order(rows: list[tuple[str, int]], draws: random.Random) -> None:
    other = [(name, draws.randrange(9)) for name, _ in rows]
    lines = [
        [f"{name} {number}" for name, number in sorted(each, key=lambda row: -row[1])]
        for each in (rows, other)
    ]
    found = rows_in_one_order(*lines)
    if found is not None:
        assert sorted(found) == sorted(lines[1])
        assert [line[0] for line in found] == [line[0] for line in lines[0]]


@pytest.mark.parametrize(("scores", "known"), [(("3.1", "3.0"), True), (("0.31", "0.30"), False)])
def test_rows_sorted_by_a_result_count(scores: tuple[str, str], known: bool) -> None:
    """Of a table by total seconds both runs have recorded these."""
    rows = [
        ("run", "9.51", "9.92"),
        ("step", scores[0], scores[1]),
        ("wait", "1.54", "1.63"),
        ("save", "0.21", "0.20"),
        ("load", "0.20", "0.24"),
    ]
    one = table(*((name, 4, a) for name, a, _ in rows))
    other = table(*((name, 4, b) for name, _, b in sorted(rows, key=lambda row: -float(row[2]))))
    sides = [
        Evidence(
            items=[
                Item(("text", f"{row[0]}.py", 7, 0), row[run], 0, 0)
                for row in rows
                if known or row[0] != "step"
            ]
        )
        for run in (1, 2)
    ]
    number, found = Texts(sides[0], sides[1]).compare(one, other, "file /out/profile.txt", many=False)
    assert (number is None) == known
    if known:
        assert found[-1].kind == "order of rows that are sorted by a time"
