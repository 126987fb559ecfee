"""Programs that repeat, ten runs each: none is called guilty."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch_python import need_torch, torch_python

from reprobuild.twice.report import verdict, verdict_line
from reprobuild.twice.runs import HowToRun
from support.twice import CLEAN, PROGRAMS, compared

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("name", CLEAN)
def test_ten_runs_of_a_clean_program_are_equal(name: str, tmp_path: Path) -> None:
    need_torch()
    found = compared(torch_python(), [str(PROGRAMS / "clean.py"), name], tmp_path, how=HowToRun(times=10))
    assert verdict(found) in ("repeats", "text"), verdict_line(found)  # the classifier prints its seconds
