"""Lines and files that a user excludes."""

from __future__ import annotations

import sys
from pathlib import Path

from reprobuild.twice.ignored import Ignored
from reprobuild.twice.report import rows, verdict
from reprobuild.twice.runs import Comparison, HowToRun
from support.twice import PROGRAMS, compared

PROGRAM = str(PROGRAMS / "texts.py")


def ran(name: str, folder: Path, ignored: Ignored | None = None) -> Comparison:
    how = HowToRun(trace=False, ignored=ignored or Ignored())
    return compared(sys.executable, [PROGRAM, name], folder, how=how)


def test_lines_and_files_that_a_user_leaves_out_are_told(tmp_path: Path) -> None:
    found = ran("results", tmp_path, Ignored(("speed|time", "digest"), ()))
    assert verdict(found) == "repeats"
    assert ("ignored", "2 lines digest") in rows(found)
    names = Ignored(("run|experiment|^[0-9a-f-]{36}",), ("*.json",))
    assert verdict(ran("names", tmp_path, names)) == "repeats"


def test_a_new_line_from_which_the_cursor_goes_back_up_is_none() -> None:
    assert Ignored().lines(b"\rall: 1/3\n\rone: 2/9\x1b[A\rall: 3/3\ndone") == [
        "\rall: 1/3\r\rone: 2/9\rall: 3/3",
        "done",
    ]
