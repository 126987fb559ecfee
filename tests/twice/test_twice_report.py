"""The verdict of ``twice``, and the line that says it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reprobuild.twice.first_difference import EndDifference
from reprobuild.twice.report import cost, notes, verdict_line
from support.parted import compared, part


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({"cut": True}, "the program took more steps than are recorded; what came later was not compared"),
        ({"hooks": False}, "the program took the recorder's hooks away, so steps may be missing"),
    ],
    ids=["too many steps", "hooks taken away"],
)
def test_of_an_incomplete_recording_nothing_more_is_promised(change: Any, note: str) -> None:
    found = compared(0.0)
    whole = [replace(stream, **change) for stream in found.runs[1].streams]
    incomplete = replace(found, runs=[found.runs[0], replace(found.runs[1], streams=whole)])
    assert verdict_line(incomplete).startswith("repeats as far as it was recorded")
    assert note in notes(incomplete)


def test_a_tensor_that_could_not_be_read_is_told() -> None:
    found = compared(0.0)
    stream = found.runs[0].streams[0]
    unread = replace(
        stream.moments[0], parts=(*stream.moments[0].parts, part("not recorded: tensors of type Odd", 0))
    )
    runs = [replace(run, streams=[replace(stream, moments=[unread])]) for run in found.runs]
    assert verdict_line(replace(found, runs=runs)).startswith("repeats as far as it was recorded")


def test_the_same_bad_end_each_time_is_no_success() -> None:
    found = compared(0.0)
    crashed = replace(found, runs=[replace(run, status=134) for run in found.runs])
    assert verdict_line(crashed).startswith("was ended by signal 6 in each run; until then it repeats")


def test_the_cost_is_told_by_the_recorders_clock_or_by_a_run_without() -> None:
    found = compared(0.0)
    own = "the recorder took 2.0 % of the steps' time by its own clock; --cost measures it by a run without"
    assert cost(found) == f"{own}, --every N makes it less"
    quick = [replace(moment, wall=0.4) for moment in found.runs[0].streams[0].moments]
    plain = replace(found.runs[0], streams=[replace(found.runs[0].streams[0], moments=quick)])
    assert cost(replace(found, plain=plain)) == (
        "+25.0 %: a step took 500 ms with the recorder and 400 ms without"
        " (medians of 118 steps, and of a run without)"
    )
    assert cost(replace(found, plain=replace(plain, streams=[]))).startswith(
        "not measured: a process has to take"
    )


@pytest.mark.parametrize(
    ("drift", "ends", "varied", "said"),
    [
        (0.0, [], "", ["varied, and no result changed: the hash seed, the number of threads"]),
        (
            0.0,
            [EndDifference(what="x", told="y")],
            "",
            ["not varied, since results differ already: the hash seed, the number of threads"],
        ),
        (
            0.0,
            [EndDifference(what="x", told="y")],
            "hashseed",
            ["not varied, since results differ already: the number of threads"],
        ),
        (
            0.0,
            [EndDifference(what="x", told="y")],
            "threads",
            ["varied, and no result changed: the hash seed"],
        ),
    ],
)
def test_what_was_varied_and_what_was_not_is_told(
    drift: float, ends: list[EndDifference], varied: str, said: list[str]
) -> None:
    found = replace(compared(drift, *ends), vary=("hashseed", "threads"), varied=varied)
    assert [note for note in notes(found) if "varied" in note] == said
