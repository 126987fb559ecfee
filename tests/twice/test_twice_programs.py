"""Programs with one planted cause each, whose line is named, and programs that repeat: under the real
recorder."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from torch_python import need_torch, torch_python

from reprobuild.twice.recorded_run import HowToRun
from reprobuild.twice.report import notes, rows, verdict, verdict_line
from support.twice import CLEAN, PROGRAMS, compared

pytestmark = [pytest.mark.slow, pytest.mark.torch]


def planted() -> list[tuple[str, int]]:
    """The functions of causes.py that have a line marked as the cause, and the number of that line."""
    text = (PROGRAMS / "causes.py").read_text()
    marked = [number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# cause")]
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    return [
        (node.name, next(number for number in marked if node.lineno <= number <= (node.end_lineno or 0)))
        for node in functions
        if any(node.lineno <= number <= (node.end_lineno or 0) for number in marked)
    ]


OF_ADDRESSES = ("id_key", "set_order")
"""Programs whose outcome is where things lie in memory, which is the same in all forks of one process."""


TRACED = HowToRun(experiments=0)
"""By the trace alone: what it finds is what experiments then begin with."""


def python() -> str:
    need_torch()
    return torch_python()


@pytest.mark.parametrize(("name", "line"), planted(), ids=str)
def test_a_planted_cause_is_named_by_its_line(name: str, line: int, tmp_path: Path) -> None:
    warm = name not in OF_ADDRESSES
    found = compared(python(), [str(PROGRAMS / "causes.py"), name], tmp_path, how=TRACED, warm=warm)
    told = [verdict_line(found), *rows(found)]
    assert verdict(found) == "parts", told
    assert found.cause is not None, told
    first = found.cause.candidates[0].place.line if found.cause.candidates else 0
    assert line in (found.cause.place.line, first), told


def test_what_threads_hand_over_by_a_queue_is_no_race(tmp_path: Path) -> None:
    argv = [str(PROGRAMS / "causes.py"), "filled_by_threads"]
    found = compared(python(), argv, tmp_path, how=TRACED, warm=True)
    told = [verdict_line(found), *rows(found)]
    assert found.cause is not None, told
    # The window of the trace may end a thread's operations earlier in one run: another path.
    assert found.cause.kind in ("outside", "flow"), told
    assert not found.cause.proven, told


PROJECTS = {
    "jitter": ("vision/train.py", "--jitter", "--workers", "2"),
    "budget": ("vision/train.py", "--schedule", "budget", "--compile"),
    "masking": ("language/run.py", "--masking", "dynamic"),
    "layer_drop": ("language/run.py", "--layer_drop", "0.4", "--checkpointing", "--max_steps", "10"),
    "langevin": ("language/run.py", "--optim", "langevin"),
    "prepare": ("language/run.py", "--prepare", "noisy"),
    "rank_seed": ("parallel/launch.py", "--seeds", "drawn"),
    "epoch": ("parallel/launch.py", "--seeds", "clock"),
}
"""Programs of several modules, and the arguments that plant the cause of that name."""


@pytest.mark.parametrize("cause", PROJECTS)
def test_a_cause_far_from_the_training_loop_is_named(cause: str, tmp_path: Path) -> None:
    folder = PROGRAMS / "projects"
    program, *argv = PROJECTS[cause]
    lines = {
        (str(path), number)
        for path in folder.glob("*/*.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if line.endswith(f"# cause: {cause}")
    }
    found = compared(python(), [str(folder / program), *argv], tmp_path, how=TRACED, warm=True)
    told = [verdict_line(found), *rows(found)]
    assert verdict(found) == "parts", told
    assert found.cause is not None, told
    places = [found.cause.place, *(each.place for each in found.cause.candidates[:1])]
    assert lines & {(place.file, place.line) for place in places}, told


@pytest.mark.parametrize(
    "argv",
    [
        ("vision/train.py", "--compile", "--workers", "2"),
        ("language/run.py", "--checkpointing", "--optim", "lion"),
        ("parallel/launch.py",),
    ],
    ids=lambda argv: argv[0],
)
def test_a_project_that_repeats_is_not_called_guilty(argv: tuple[str, ...], tmp_path: Path) -> None:
    found = compared(python(), [str(PROGRAMS / "projects" / argv[0]), *argv[1:]], tmp_path, warm=True)
    assert verdict(found) in ("repeats", "text"), verdict_line(found)


STARTED = ("classifier", "children")
"""Programs that are started as a user's are, from nothing."""


@pytest.mark.parametrize("name", CLEAN)
def test_a_program_that_repeats_is_not_called_guilty(name: str, tmp_path: Path) -> None:
    warm = name not in STARTED
    found = compared(python(), [str(PROGRAMS / "clean.py"), name], tmp_path, warm=warm)
    assert verdict(found) in ("repeats", "text"), verdict_line(found)


def test_an_optimizer_at_the_address_of_an_earlier_one_is_another(tmp_path: Path) -> None:
    found = compared(python(), [str(PROGRAMS / "clean.py"), "optimizer_per_task"], tmp_path, warm=True)
    assert verdict(found) in ("repeats", "text"), verdict_line(found)
    [stream] = found.runs[0].streams
    assert sum(moment.kind == "start" for moment in stream.moments) == 12


def test_threads_that_train_are_compared_task_by_task(tmp_path: Path) -> None:
    found = compared(python(), [str(PROGRAMS / "clean.py"), "training_in_threads"], tmp_path, warm=True)
    assert verdict(found) == "repeats", verdict_line(found)
    assert sum(stream.is_thread for stream in found.runs[0].streams) == 8
    found = compared(python(), [str(PROGRAMS / "clean.py"), "one_task_in_threads"], tmp_path, warm=True)
    assert found.parting is not None
    assert (found.parting.stream, found.parting.label) == ("a thread", "the first step of SGD")


def test_a_crash_in_each_run_is_no_success(tmp_path: Path) -> None:
    found = compared(python(), [str(PROGRAMS / "clean.py"), "crash"], tmp_path, warm=True)
    assert verdict(found) == "unfinished"
    assert verdict_line(found).startswith(
        "was ended by signal 6 in each run; until then it repeats (2 runs, 2 steps"
    )


def test_hooks_that_are_taken_away_are_told(tmp_path: Path) -> None:
    found = compared(python(), [str(PROGRAMS / "clean.py"), "hooks_taken_away"], tmp_path, warm=True)
    assert any("took the recorder's hooks away" in note for note in notes(found))


def test_what_cannot_be_read_is_told_and_nothing_is_promised_of_it(tmp_path: Path) -> None:
    found = compared(python(), [str(PROGRAMS / "clean.py"), "unreadable"], tmp_path, warm=True)
    assert verdict_line(found).startswith("repeats as far as it was recorded")
    assert "not recorded: tensors of type Odd" in notes(found)


def test_a_trace_can_be_left_out(tmp_path: Path) -> None:
    how = HowToRun(trace=False)
    found = compared(python(), [str(PROGRAMS / "causes.py"), "clock_feature"], tmp_path, how=how, warm=True)
    assert verdict_line(found).startswith("parts at step 0 (SGD): inputs: item 0")
    assert found.cause is None
