"""Programs without torch under the real recorder: what remains to compare, and bad ends."""

from __future__ import annotations

import sys
from pathlib import Path

from reprobuild.twice.report import notes, to_dict, verdict, verdict_line
from reprobuild.twice.runs import HowToRun
from support.twice import PROGRAMS, compared

PROGRAM = str(PROGRAMS / "without_torch.py")


def test_a_program_without_torch_is_compared_by_its_end(tmp_path: Path) -> None:
    found = compared(sys.executable, [PROGRAM, "same"], tmp_path)
    assert verdict_line(found) == "repeats bit for bit (2 runs, 0 steps, 1 line of output, 1 file)"
    assert notes(found) == ["no process imported torch; exit status, output and files were compared"]


def test_a_clock_that_is_printed_is_found(tmp_path: Path) -> None:
    found = compared(sys.executable, [PROGRAM, "clock"], tmp_path)
    assert verdict_line(found).startswith("parts at its end: line 1 of standard output: run 1 wrote")
    assert found.cause is not None
    assert (found.cause.kind, found.cause.candidates[0].name) == ("source", "time.time_ns")
    assert to_dict(found)["cause"]["text"] == "print(time.time_ns() % 1_000_003)"


def test_a_program_that_hangs_is_stopped(tmp_path: Path) -> None:
    found = compared(sys.executable, [PROGRAM, "hang"], tmp_path, how=HowToRun(seconds=1.0))
    assert verdict(found) == "unfinished"
    assert verdict_line(found).startswith("did not end within the time limit in each run")
