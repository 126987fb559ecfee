"""A program that is killed after a step and started again: each state that it forgets is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch_python import need_torch, torch_python

from reprobuild.twice.resume import Resumed, compare_resumed, resume_command
from reprobuild.twice.runs import HowToRun, one_run
from support.twice import PROGRAMS, recorded, scratch_below

LOST = {
    "nothing": (),
    "optimizer": ("optimizer state",),  # at the stop its rate is still the first
    "scheduler": ("optimizer settings",),
    "torch": ("the place in the data", "the random generator of torch"),
    "python": ("the random generator of python",),
}


def resumed(forgets: str, folder: Path, at: int) -> Resumed:
    need_torch()
    command = (torch_python(), str(PROGRAMS / "resumable.py"), forgets)
    program, *argv = resume_command(command, None, at)
    runs = [recorded(command[0], command[1:]), recorded(program, argv)]
    whole, stopped = (one_run(run, HowToRun(), scratch_below(folder)) for run in runs)
    return compare_resumed(whole.streams, stopped.streams)


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("forgets", LOST)
def test_a_state_that_is_not_saved_is_named(forgets: str, tmp_path: Path) -> None:
    found = resumed(forgets, tmp_path, at=5)
    assert (found.problem, found.at, found.steps) == ("", 4, 8)
    assert set(LOST[forgets]) <= set(found.lost)
    assert found.holds == (forgets == "nothing")


@pytest.mark.slow
@pytest.mark.torch
def test_a_program_that_begins_again_is_told(tmp_path: Path) -> None:
    found = resumed("nothing", tmp_path, at=1)
    assert found.problem == "after the stop it began at the first step again: it found no checkpoint"
