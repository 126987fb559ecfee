"""Commands and shell scripts that draw by the system's generator."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from reprobuild.in_image.twice import commands
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


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("-P 2 -n 1 echo a", "-n 1 echo a"),
        ("-P2 -I X echo -P X -n", "-I X echo -P X -n"),
        ("-n 2 -P 4 echo", "-n 2 echo"),
        ("--max-procs=3 -r -d , echo a b", "-r -d , echo a b"),
        ("-0 --max-procs 3 echo", "-0 echo"),
        ("", ""),
        ("-n1", "-n1"),
    ],
)
def test_xargs_is_told_all_but_how_many_run_at_once(words: str, told: str, tmp_path: Path) -> None:
    real = shutil.which("xargs")
    assert real is not None
    shows = tmp_path / "shows"
    shows.write_text('#!/bin/sh\necho "$*"\n')
    answers = []
    for number, program in enumerate((real, shows)):
        ours = tmp_path / f"xargs{number}"
        ours.write_text(f"#!/bin/sh\n{commands.REPLACED['xargs'].format(program)}\n")
        for each in (shows, ours):
            each.chmod(0o755)
        answers.append(given(str(ours), words))
    assert answers == [given(real, words), (0, sorted(told.encode().split()))]


def given(program: str, words: str) -> tuple[int, list[bytes]]:
    """Run a program with some input; the words that it prints come in any order."""
    done = subprocess.run(
        [program, *words.split()], input=b"1 'x y'\n2,3\n", capture_output=True, check=False
    )
    return done.returncode, sorted(done.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "is_fixed"),
    [
        (["+%s"], True), (["-u", "+%Y"], True), (["-d", "@5", "+%s"], False), (["--date=@5", "+%s"], False),
        (["-r", "/etc/passwd", "+%s"], False),
    ],
)  # fmt: skip
def test_the_present_is_fixed_and_other_dates_are_not(
    arguments: list[str], is_fixed: bool, tmp_path: Path
) -> None:
    real = shutil.which("date")
    assert real is not None
    ours = tmp_path / "date"
    ours.write_text(f"#!/bin/sh\n{commands.REPLACED['date'].format(real)}\n")
    ours.chmod(0o755)
    at = ["-d", "@1900000000"] if is_fixed else []
    expected = subprocess.run([real, *at, *arguments], check=True, capture_output=True).stdout
    assert subprocess.run([ours, *arguments], check=True, capture_output=True).stdout == expected
