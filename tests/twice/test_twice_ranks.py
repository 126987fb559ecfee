from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from reprobuild.twice.ranks import same_draws
from reprobuild.twice.records import Moment, MomentPart, Stream


def rank(number: str, *states: str, worker: str = "") -> Stream:
    found = Stream(rank=number, worker=worker, process="MainProcess", argv=("train.py",), values=Path())
    for step, state in enumerate(states):
        parts = (MomentPart("random torch", state, b""), MomentPart("random python", "kept", b""))
        found.moments.append(
            Moment(
                kind="step",
                label=f"step {step}",
                number=step,
                parts=parts,
                names={},
                losses=(),
                sample=(),
                wall=1,
                spent=0,
            )
        )
    return found


def test_ranks_with_one_seed_are_told_once_they_have_drawn() -> None:
    (note,) = same_draws([rank("10", "a", "b"), rank("2", "a", "b"), rank("0", "c", "d")])
    assert note.startswith("ranks 2, 10 drew the same random numbers of torch from step to step")


def test_ranks_that_differ_or_draw_nothing_and_workers_are_not() -> None:
    assert same_draws([rank("0", "a", "b"), rank("1", "c", "d")]) == []
    assert same_draws([rank("0", "a", "a"), rank("1", "a", "a")]) == []
    assert same_draws([rank("0", "a", "b"), rank("0", "a", "b", worker="1")]) == []
    assert same_draws([rank("", "a", "b"), replace(rank("", "a", "b"), process="Other")]) == []
