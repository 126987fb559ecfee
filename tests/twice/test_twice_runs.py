"""Programs without torch under the real recorder: what remains to compare, and bad ends."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from reprobuild.twice import recorded_run, runs
from reprobuild.twice.first_difference import EndDifference, Parting
from reprobuild.twice.recorded_run import RECORDS, HowToRun, ProgramRun, RanProgram, between, one_run
from reprobuild.twice.records import read_records
from reprobuild.twice.report import cost, notes, rows, to_dict, verdict, verdict_line
from reprobuild.twice.runs import compare_runs
from reprobuild.twice.text_differences import TextDifference
from support import parted
from support.schemas import schema_of
from support.twice import PROGRAMS, compared, recorded, scratch_below

PROGRAM = str(PROGRAMS / "without_torch.py")


def test_a_program_without_torch_is_compared_by_its_end(tmp_path: Path) -> None:
    found = compared(sys.executable, [PROGRAM, "same"], tmp_path)
    assert verdict_line(found) == (
        "numbers repeat, text differs in 1 place (2 runs, 0 steps, 1 line of output, 1 file)"
    )
    assert notes(found) == ["no process imported torch; exit status, output and files were compared"]


def test_a_clock_that_is_printed_is_found(tmp_path: Path) -> None:
    found = compared(sys.executable, [PROGRAM, "clock"], tmp_path)
    assert verdict_line(found).startswith("parts at its end: line 1 of standard output: run 1 wrote")
    assert found.cause is not None
    assert (found.cause.kind, found.cause.candidates[0].name) == ("source", "time.time_ns")
    schema_of("twice").validate(json.loads(json.dumps(to_dict(found))))
    assert to_dict(found)["cause"]["text"] == "random.seed(time.time_ns())"


def test_a_trace_knows_times_and_drawn_names_as_a_run_without_one_does(tmp_path: Path) -> None:
    program = recorded(sys.executable, [str(PROGRAMS / "texts.py"), "durations"])

    def traced(folder: Path, settings: Mapping[str, str], seconds: float | None) -> RanProgram:
        return program(folder, {**settings, "REPROBUILD_TWICE_TRACE": "sources"}, seconds)

    scratch = scratch_below(tmp_path)
    runs = [one_run(traced, HowToRun(), scratch) for _ in range(2)]
    assert between(*runs)[1] == []


def test_a_pool_of_threads_works_as_without_the_recorder(tmp_path: Path) -> None:
    settings = {"REPROBUILD_TWICE_EVERY": "1"}
    ran = recorded(sys.executable, [PROGRAM, "pool"])(tmp_path, settings, 20)
    assert (ran.status, ran.stdout, ran.stderr) == (0, b"[1, 2]\n", b"")


def test_a_call_of_the_systems_generator_counts_once_however_often_it_draws(tmp_path: Path) -> None:
    trace = {"REPROBUILD_TWICE_TRACE": "sources", "REPROBUILD_TWICE_EVERY": "1"}
    recorded(sys.executable, [PROGRAM, "system"])(tmp_path, trace, None)
    [stream] = read_records(tmp_path / RECORDS)
    assert sum(source.kind == "entropy" for source in stream.sources) == 20


def test_a_program_that_hangs_is_stopped(tmp_path: Path) -> None:
    found = compared(sys.executable, [PROGRAM, "hang"], tmp_path, how=HowToRun(seconds=1.0))
    assert verdict(found) == "unfinished"
    assert verdict_line(found).startswith("did not end within the time limit in each run")


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ("status", "exit status: run 1 ended with status 0, run 2 ended with status 3"),
        ("stderr", "line 1 of standard error: run 1 wrote '', run 2 'otherwise'"),
        ("stdout", "line 1 of standard output: run 1 wrote '', run 2 'otherwise'"),
    ],
)
def test_each_end_is_compared(how: str, what: str, tmp_path: Path) -> None:
    argv = [PROGRAM, "counts", str(tmp_path / "runs"), how, "2"]
    found = compared(sys.executable, argv, tmp_path, how=HowToRun(trace=False))
    assert verdict_line(found).startswith(f"parts at its end: {what}")


def test_the_one_run_of_four_that_parts_is_the_one_that_is_told(tmp_path: Path) -> None:
    argv = [PROGRAM, "counts", str(tmp_path / "runs"), "stdout", "3"]
    found = compared(sys.executable, argv, tmp_path, how=HowToRun(times=4))
    assert (verdict(found), found.other, found.cause) == ("parts", 3, None)
    assert ("cause", "seen once, not caught again") in [(name, text[:27]) for name, text in rows(found)]


def test_a_difference_that_comes_again_and_has_no_known_cause_was_not_seen_once(tmp_path: Path) -> None:
    native = (
        "import ctypes\nx = (ctypes.c_char * 8)()\nctypes.CDLL(None).getentropy(x, 8)\nprint(x.raw.hex())"
    )
    found = compared(sys.executable, ["-c", native], tmp_path)
    assert found.cause is None
    told = [text for name, text in rows(found) if name == "cause"]
    assert [text[:39] for text in told] == ["not known: 3 pairs of runs with a trace"]


POOL = """
import ctypes, faulthandler, multiprocessing, signal, time
def work(_):
    began = time.perf_counter()
    sum(range(20_000))
    return f"took {time.perf_counter() - began:.9f} s"
def stuck():
    signal.alarm(25)
    mutex = ctypes.create_string_buffer(64)  # of zeros: PTHREAD_MUTEX_INITIALIZER
    for _ in range(2):
        ctypes.CDLL(None).pthread_mutex_lock(mutex)
faulthandler.dump_traceback_later(20, exit=True)
with multiprocessing.get_context("fork").Pool(2) as pool:
    pool.apply_async(stuck)
    print(*pool.map(work, range(6), 1), sep="\\n")
"""


def test_a_pool_ends_a_worker_that_waits_for_ever_and_its_times_are_known(tmp_path: Path) -> None:
    found = compared(sys.executable, ["-c", POOL], tmp_path, how=HowToRun(trace=False))
    assert verdict(found) == "text", rows(found)


def test_a_program_that_fails_under_the_trace_is_told(tmp_path: Path) -> None:
    """On a GPU the trace itself once ended programs by signal 11, and nothing but "not known" was said."""
    native = (
        "import ctypes; x = (ctypes.c_char * 8)(); ctypes.CDLL(None).getentropy(x, 8); print(x.raw.hex())"
    )
    program = recorded(sys.executable, ["-c", native])

    def dying(folder: Path, settings: Mapping[str, str], seconds: float | None) -> RanProgram:
        ran = program(folder, settings, seconds)
        return replace(ran, status=-11) if "REPROBUILD_TWICE_TRACE" in settings else ran

    found = compare_runs(dying, HowToRun(), scratch_below(tmp_path), lambda _: None)
    assert (found.cause, found.stopped) == (None, "it was ended by signal 11")
    told = dict(rows(found))["cause"]
    assert told == "not known: it was ended by signal 11 while the program ran with a trace"


def test_the_run_without_the_recorder_has_to_end_as_the_others_did(tmp_path: Path) -> None:
    argv = [PROGRAM, "counts", str(tmp_path / "runs"), "stdout", "3"]
    found = compared(sys.executable, argv, tmp_path, how=HowToRun(cost=True, trace=False))
    told = "run 1 wrote '', the run without the recorder 'otherwise'"
    assert verdict_line(found).startswith(f"parts at its end: line 1 of standard output: {told}")
    same = compared(sys.executable, [PROGRAM, "same"], tmp_path, how=HowToRun(cost=True))
    assert verdict(same) == "text"
    assert cost(same) == "not measured: a process has to take 2 steps both with the recorder and without"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_lines_beyond_those_that_are_kept_count_too(
    stream: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_run, "MOST_LINES", 50)
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys\n"
        f"for number in range(60): print('loss', number, file=sys.{stream})\n"
        f"print('loss', os.urandom(4).hex() if sys.argv[1:] else 1, file=sys.{stream})\n"
    )
    assert verdict(compared(sys.executable, [str(program)], tmp_path)) == "repeats"
    found = compared(sys.executable, [str(program), "draw"], tmp_path)
    assert verdict(found) == "parts"
    assert "12 more lines" in found.ends[0].told


def test_text_that_differs_in_one_run_of_three_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later run with the text of the first took it away, and the verdict was that every bit repeats."""
    text = TextDifference(where="line 1 of standard output", values=("1", "2"), kind="a time")
    told: dict[str, list[TextDifference]] = {"a": [], "b": [text], "c": []}

    def between(
        _: ProgramRun, other: ProgramRun, **__: object
    ) -> tuple[Parting | None, list[EndDifference], list[TextDifference]]:
        return None, [], told[other.last]

    monkeypatch.setattr(runs, "between", between)
    three = [replace(parted.run(0.0), last=name) for name in told]
    assert runs._first_other(three) == runs._Other(1, None, [], [text], doubted=False)
    assert runs._first_other([three[0], three[2], three[1]]).number == 2
