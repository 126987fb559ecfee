"""Commands and shell scripts that draw by the system's generator."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from conftest import needs
from reprobuild.in_image.twice import commands
from reprobuild.in_image.twice.commands import drawn_by, drawn_in, scripts


def test_the_lines_of_a_script_that_draw_are_told_and_no_comments(tmp_path: Path) -> None:
    script = tmp_path / "mix.sh"
    script.write_text("#!/bin/sh\n# shuf\nshuf a > b\nsort -R --random-source=seed a\necho $RANDOM\n")
    assert [(line, drawn) for line, drawn, _ in drawn_in(str(script))] == [(3, "shuf"), (5, "$RANDOM")]
    script.write_text("a && b\na 2>&1\na &> log\na\\&\n")
    assert drawn_in(str(script)) == []
    script.write_text("a &\nfor n in 1 2; do b $n & done\n(c; d) & # both\nwait\n")
    assert [(line, drawn) for line, drawn, _ in drawn_in(str(script))] == [(n, "&") for n in (1, 2, 3)]
    script.write_text("#!/bin/sh\n# shuf\nshuf a > b\nsort -R --random-source=seed a\necho $RANDOM\n")
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
        ("make -s -j6 all", "make -s -j"),
        ('make -C "$work" --jobs="$n" all', 'make -C "$work" --jobs'),
        ("make -sj", "make -sj"),
        ("make -j1 all; make -j 1", ""),
        ("make all && cmake --build . -j 4", ""),
        ('build=$(mktemp -d "$TMPDIR/wheel-XXXX")', "mktemp"),
        ("command -v mktemp", ""),
        (["sort", "-R", "names"], "sort -R"),
        ("awk 'BEGIN { srand() } { print rand(), $0 }' names", "srand()"),
        ("awk 'BEGIN { srand(7) } { print rand(), $0 }' names", ""),
        (["sort", "-r", "names", Path("shuffled")], ""),
        ("command -v shuf > /dev/null", ""),
        ("require shuf", ""),
        ("newest=$(ls -1t runs | head -n 1)", "ls -1t"),
        ("ls -l runs", ""),
        ("tools -t 3", ""),
        ("if ! LC_ALL=C shuf names; then", "shuf"),
        ("sort names | /usr/bin/shuf -n 3", "shuf"),
        ("python3 mix.py --seed $(date +%s)", "date +%s"),
        ("date -u '+%N'", "date -u '+%N"),
        ('echo "$(date +%H:%M:%S) begins"; date -d @5 +%s', ""),
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
        ours.write_text(f"#!/bin/sh\n{commands.REPLACED['xargs'].replace('{}', str(program))}\n")
        for each in (shows, ours):
            each.chmod(0o755)
        answers.append(given(str(ours), words))
    assert answers == [given(real, words), (0, sorted(told.encode().split()))]


def test_a_replaced_command_passes_on_the_functions_of_bash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """dash, which is Debian's sh, drops variables of such names."""
    monkeypatch.setenv("REPROBUILD_TWICE", str(tmp_path))
    monkeypatch.setenv("PATH", os.environ["PATH"])
    commands.replace({"xargs": commands.REPLACED["xargs"]})
    script = "shown() { echo \"<$1>\"; }; export -f shown; echo a | xargs -P 2 -n 1 bash -c 'shown $0'"
    done = subprocess.run(["bash", "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout == "<a>\n"


def given(program: str, words: str) -> tuple[int, list[bytes]]:
    """Run a program with some input; the words that it prints come in any order."""
    done = subprocess.run(
        [program, *words.split()], input=b"1 'x y'\n2,3\n", capture_output=True, check=False
    )
    return done.returncode, sorted(done.stdout.split())


PRESENT = [["+%s"], ["-u", "+%Y-%m-%d %H:%M:%S.%N"]]
OTHERS = [["-d", "@5", "+%s"], ["--date=@5", "+%s"], ["-r", "/etc/passwd", "+%s"]]


def date_as(script: str, arguments: list[str], folder: Path) -> str:
    """Return what ``date`` prints where a script takes its place."""
    real = shutil.which("date")
    assert real is not None
    ours = folder / "date"
    ours.write_text(f"#!/bin/sh\n{script.replace('{}', real)}\n")
    ours.chmod(0o755)
    return subprocess.run([ours, *arguments], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("arguments", [*PRESENT, *OTHERS])
def test_the_present_is_fixed_and_other_dates_are_not(arguments: list[str], tmp_path: Path) -> None:
    at = ["-d", "@1900000000"] if arguments in PRESENT else []
    expected = subprocess.run(["date", *at, *arguments], check=True, capture_output=True, text=True).stdout
    assert date_as(commands.FIXED_DATE, arguments, tmp_path) == expected


@pytest.mark.parametrize("arguments", OTHERS)
def test_only_the_present_is_faster(arguments: list[str], tmp_path: Path) -> None:
    expected = subprocess.run(["date", *arguments], check=True, capture_output=True, text=True).stdout
    assert date_as(commands.faster_date(time.time_ns(), 100), arguments, tmp_path) == expected


def test_the_present_is_as_many_times_as_far_from_its_beginning(tmp_path: Path) -> None:
    began = time.time_ns() - 3_000_000_000
    shown = float(date_as(commands.faster_date(began, 1000), ["+%s.%N"], tmp_path))
    assert 3000 <= shown - began / 1e9 < 1000 * (time.time_ns() - began) / 1e9 + 1


@pytest.mark.slow  # for which make is installed
def test_make_runs_one_job_at_a_time_whatever_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPROBUILD_TWICE", str(tmp_path))
    monkeypatch.setenv("PATH", os.environ["PATH"])
    needs("make")
    rules = "all: a b\na:\n\t@sleep 0.3; echo a >> order\nb:\n\t@echo b >> order\n"
    (tmp_path / "Makefile").write_text(rules)
    subprocess.run(["make", "-j2", "all"], check=True, cwd=tmp_path)
    commands.replace({"make": commands.ONE_JOB})
    subprocess.run(["make", "-j2", "all"], check=True, cwd=tmp_path)
    assert (tmp_path / "order").read_text().split() == ["b", "a", "a", "b"]


def test_names_of_mktemp_have_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPROBUILD_TWICE", str(tmp_path))
    monkeypatch.setenv("PATH", os.environ["PATH"])
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    commands.replace({"mktemp": commands.FIXED_NAME})

    def made(*arguments: str) -> str:
        done = subprocess.run(["mktemp", *arguments], check=False, capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else "failed"

    folder, file = made("-d"), made("-p", str(tmp_path), "wheel-XXXXXX.txt")
    assert (folder, file) == (f"{tmp_path}/pinned0", f"{tmp_path}/pinned1")
    assert (Path(folder).is_dir(), Path(file).is_file()) == (True, True)
    assert made("-u") == f"{tmp_path}/pinned2"  # which makes none
    assert made("-p", f"{tmp_path}/none") == "failed"
    monkeypatch.chdir(folder)
    assert (made("-d", "build.XXXX"), Path("pinned0").is_dir()) == ("pinned0", True)


def test_a_script_has_what_takes_the_places_of_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPROBUILD_TWICE", str(tmp_path))
    monkeypatch.setenv("PATH", os.environ["PATH"])
    commands.replace({"date": commands.FIXED_DATE, "no-such-command": ""})
    assert [each.name for each in (tmp_path / "commands").iterdir()] == ["date"]
    assert subprocess.run(["date", "+%s"], check=True, capture_output=True).stdout == b"1900000000\n"
    path = os.environ["PATH"]
    commands.replace({"date": commands.FIXED_DATE})  # another process of the run
    assert os.environ["PATH"] == path


def test_bash_runs_what_a_script_starts_beside_it_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPROBUILD_TWICE", str(tmp_path))
    monkeypatch.setenv("BASH_ENV", "")
    script = tmp_path / "beside.sh"
    script.write_text(
        """set -eu
tell() { sleep "$1"; echo "$1"; }
for each in 0.3 0.2 0.1; do
  tell $each >> told &
done
for each in 0.2 0.1; do (sleep $each; echo group $each >> told) & done
wait
false || echo "status $?" >> told
"""
    )
    told = []
    for _ in range(2):
        subprocess.run(["bash", script], cwd=tmp_path, check=True)
        told.append((tmp_path / "told").read_text().split("\n")[:-1])
        (tmp_path / "told").unlink()
        commands.one_by_one()
    assert told[0][-1] == "status 1"
    assert told[0][:2] != told[1][:2]
    assert told[1] == ["0.3", "0.2", "0.1", "group 0.2", "group 0.1", "status 1"]


def test_a_pipe_is_no_script(tmp_path: Path) -> None:
    pipe = tmp_path / "run.sh"
    os.mkfifo(pipe)
    assert drawn_in(str(pipe)) == []  # to open it would wait for whoever writes to it
