"""Orders, and other things from outside, at the line that takes them."""

from __future__ import annotations

import sys
from pathlib import Path

from reprobuild.twice import known_causes
from reprobuild.twice.recorded_run import RECORDS
from reprobuild.twice.records import read_records
from support.twice import PROGRAMS, recorded

PROGRAM = str(PROGRAMS / "without_torch.py")


def test_what_comes_from_outside_is_recorded_at_the_line_that_takes_it(tmp_path: Path) -> None:
    trace = {"REPROBUILD_TWICE_TRACE": "sources", "REPROBUILD_TWICE_EVERY": "1"}
    ran = recorded(sys.executable, [PROGRAM, "outside"])(tmp_path, trace, 30)
    assert (ran.status, ran.stderr) == (0, b"")
    lines = Path(PROGRAM).read_text().splitlines()
    marked = {(n, line.partition("  # ")[2]) for n, line in enumerate(lines, 1) if "  # " in line}
    expected = {(n, mark) for n, mark in marked if mark.split(" ")[0] in known_causes.SOURCES}
    if sys.version_info >= (3, 13):
        expected = {each for each in expected if each[1] != "order asyncio.as_completed"}
    [stream] = read_records(tmp_path / RECORDS)
    assert expected <= {(each.place.line, f"{each.kind} {each.name}") for each in stream.sources}
    scripts = [each.place for each in stream.sources if each.name == "sort -R in a command"]
    assert [(Path(each.file).name, each.line) for each in scripts] == [("mixed.sh", 4)]
