"""A program that is stopped and started again, by itself or by two commands: each state that it forgets is
named."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from torch_python import need_torch, torch_python

from reprobuild.twice.recorded_run import HowToRun, ProgramRun, one_run
from reprobuild.twice.resume import Resumed, compare_resumed, resume_command
from support.twice import PROGRAMS, recorded, scratch_below

pytestmark = [pytest.mark.slow, pytest.mark.torch]

LOST = {
    "nothing": (),
    "model": ("parameters",),
    "buffers": ("buffers",),
    "optimizer": ("optimizer state",),  # at the stop its rate is still the first
    "scheduler": ("the scheduler",),
    "scaler": ("the gradient scaler",),
    "torch": ("the random generator of torch",),
    "python": ("the random generator of python",),
    "numpy": ("the random generator of numpy",),
    "data": ("the place in the data",),
}
OTHERS = frozenset(name for names in LOST.values() for name in names)
PROGRAM = (str(PROGRAMS / "resumable.py"),)


def run(command: tuple[str, ...], folder: Path) -> ProgramRun:
    return one_run(recorded(command[0], command[1:]), HowToRun(), scratch_below(folder))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> ProgramRun:
    need_torch()
    return run((torch_python(), *PROGRAM), tmp_path_factory.mktemp("whole"))


def resumed(whole: ProgramRun, again: tuple[str, ...], folder: Path) -> Resumed:
    return compare_resumed(whole.streams, run(again, folder).streams)


@pytest.mark.parametrize("forgets", LOST)
def test_a_state_that_is_not_saved_is_named(forgets: str, whole: ProgramRun, tmp_path: Path) -> None:
    found = resumed(whole, resume_command((torch_python(), *PROGRAM, forgets), None, 5), tmp_path)
    assert (found.problem, found.at, found.steps) == ("", 4, 8)
    assert OTHERS.intersection(found.lost) == set(LOST[forgets])
    assert found.holds == (forgets == "nothing")


def test_two_commands_save_and_go_on(whole: ProgramRun, tmp_path: Path) -> None:
    save, go_on = (
        shlex.join((torch_python(), *PROGRAM, *words)) for words in (("--epochs", "2"), ("scaler",))
    )
    found = resumed(whole, resume_command((), (save, go_on), None), tmp_path)
    assert (found.problem, found.at, found.lost) == ("", 4, ("the gradient scaler",))
    found = resumed(whole, resume_command((), (f"{save}; false", go_on), None), tmp_path)
    assert found.problem == "after the stop no step was taken: the program did not go on"


def test_a_program_that_begins_again_is_told(whole: ProgramRun, tmp_path: Path) -> None:
    found = resumed(whole, resume_command((torch_python(), *PROGRAM), None, 1), tmp_path)
    assert found.problem == "after the stop it began at the first step again: it found no checkpoint"
