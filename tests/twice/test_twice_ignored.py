"""Lines and files that a user excludes."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from reprobuild.errors import RepeatError
from reprobuild.twice import ignored
from reprobuild.twice.ignored import Ignored
from reprobuild.twice.recorded_run import Comparison, HowToRun
from reprobuild.twice.report import rows, verdict
from support.twice import PROGRAMS, compared

PROGRAM = str(PROGRAMS / "texts.py")


def ran(name: str, folder: Path, patterns: Ignored | None = None) -> Comparison:
    how = HowToRun(trace=False, ignored=patterns or Ignored())
    return compared(sys.executable, [PROGRAM, name], folder, how=how)


def test_lines_and_files_that_a_user_leaves_out_are_told(tmp_path: Path) -> None:
    found = ran("results", tmp_path, Ignored(("speed|time", "digest"), ()))
    assert verdict(found) == "repeats"
    assert ("ignored", "2 lines digest") in rows(found)
    names = Ignored(("run|experiment|session|task|^id|done|^[0-9a-f-]{36}",), ("*.json",))
    assert verdict(ran("names", tmp_path, names)) == "repeats"


def test_a_new_line_from_which_the_cursor_goes_back_up_is_none() -> None:
    assert Ignored().lines(b"\rall: 1/3\n\rone: 2/9\x1b[A\rall: 3/3\ndone") == [
        "\rall: 1/3\r\rone: 2/9\rall: 3/3",
        "done",
    ]


def test_a_pattern_without_end_is_an_error_and_no_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recording may bring it."""
    monkeypatch.setattr(ignored, "_MOST_SECONDS", 0.3)
    patterns = Ignored(("(a+)+$",))
    assert patterns.lines(b"aaa\nb") == ["b"]
    with pytest.raises(RepeatError, match=r"not searched for within 0\.3 s"):
        patterns.lines(b"a" * 200 + b"b")
    with pytest.raises(RepeatError):  # the time is that of all searches
        patterns.lines(b"a" * 200 + b"b")
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)
