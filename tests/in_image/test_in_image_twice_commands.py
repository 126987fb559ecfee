"""Commands and shell scripts that draw by the system's generator."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprobuild.in_image.twice.commands import drawn_by, drawn_in, scripts


def test_the_lines_of_a_script_that_draw_are_told_and_no_comments(tmp_path: Path) -> None:
    script = tmp_path / "mix.sh"
    script.write_text("#!/bin/sh\n# shuf\nshuf a > b\nsort -R --random-source=seed a\necho $RANDOM\n")
    assert [(line, drawn) for line, drawn, _ in drawn_in(str(script))] == [(3, "shuf"), (5, "$RANDOM")]
    assert scripts(["sh", str(script), "other"]) == scripts(f"sh {script}") == [str(script)]
    script.write_text("#!/bin/bash\nRANDOM=7\necho $RANDOM\n")
    assert drawn_in(str(script)) == []
    text = tmp_path / "notes.txt"
    text.write_text("shuf\n")
    assert drawn_in(str(text)) == drawn_in(str(tmp_path / "none.sh")) == []


@pytest.mark.parametrize(
    ("command", "drawn"),
    [
        (["sh", "-c", "echo loss 0.$(shuf -i 1000-9999 -n 1)"], "shuf"),
        ("head -c 4 /dev/urandom > seed", "/dev/urandom"),
        (b"echo $RANDOM", "$RANDOM"),
        (["sh", "-c", "RANDOM=3; echo $RANDOM"], ""),
        (["shuf", "--random-source=seed", "names"], ""),
        ("ls | xargs -n 1 -P 4 python3 read.py", "xargs -n 1 -P 4"),
        ('ls | xargs -n 1 -P "$JOBS" wc', 'xargs -n 1 -P "$'),
        ("ls | xargs --max-procs=0 wc", "xargs --max-procs=0"),
        ("ls | xargs -P 1 wc | cp -P 2 a", ""),
        (["sort", "-R", "names"], "sort -R"),
        ("awk 'BEGIN { srand() } { print rand(), $0 }' names", "srand()"),
        ("awk 'BEGIN { srand(7) } { print rand(), $0 }' names", ""),
        (["sort", "-r", "names", Path("shuffled")], ""),
    ],
)
def test_a_command_that_draws_from_the_system_is_recognized(command: object, drawn: str) -> None:
    assert drawn_by(command) == drawn
