"""Causes in scripts of which no process is a Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprobuild.twice.recorded_run import HowToRun
from reprobuild.twice.report import rows, verdict
from reprobuild.twice.runs import compare_runs
from support.twice import recorded, scratch_below


@pytest.mark.parametrize(
    ("script", "line", "pinned"),
    [
        ("seq 99 > all\nshuf all > order\n", 2, "a fixed source of random bytes for shuf and sort"),
        ("cd /\ncd - > /dev/null\nmktemp -u > name-of-it\n", 3, "numbers in the names that mktemp makes"),
    ],
)
def test_a_line_of_a_script_is_proven_to_be_the_cause(
    script: str, line: int, pinned: str, tmp_path: Path
) -> None:
    path = tmp_path / "run.sh"
    path.write_text(script)
    run = recorded("/bin/sh", [str(path)])
    found = compare_runs(run, HowToRun(), scratch_below(tmp_path), lambda _: None)
    told = rows(found)
    assert verdict(found) == "parts", told
    assert found.cause is not None, told
    assert (found.cause.proven, found.cause.candidates[0].place.line) == (True, line), told
    assert (pinned, True) in [(each.what, each.repeats) for each in found.cause.trials]
