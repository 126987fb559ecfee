"""What reaches standard output and standard error, tried in a process of its own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reprobuild.cli.output import columns, table
from support.images import Entry, docker_archive, layer

PROGRAM = [sys.executable, "-m", "reprobuild"]


@pytest.fixture
def pair(tmp_path: Path) -> list[str]:
    """Two images whose differing file has a name that rings and turns what follows."""
    files = [Entry(path="etc/\x07a\u202eb", content=content) for content in (b"1", b"2")]
    return [
        str(docker_archive(tmp_path / f"{number}.tar", [layer(file)], {}))
        for number, file in enumerate(files)
    ]


def run(*argv: str, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PROGRAM, *argv], stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)


def test_names_of_an_image_s_files_do_nothing_to_the_terminal(pair: list[str]) -> None:
    done = run("compare", *pair)
    assert done.returncode == 13
    assert not {"\x07", "\u202e"} & {*done.stdout, *done.stderr}
    assert "/etc/\\u0007a\\u202eb: content" in done.stdout
    found = json.loads(run("compare", "--json", *pair).stdout)
    assert found["differences"][0]["path"] == "/etc/\x07a\u202eb"


def test_a_cell_of_two_lines_makes_no_row(capsys: pytest.CaptureFixture[str]) -> None:
    """The title of a layer is whatever its image says."""
    columns(("LAYER", "CONTENT"), [("1", "torch\n2      numpy")])
    assert capsys.readouterr().out == "LAYER  CONTENT\n1      torch\\u000a2      numpy\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("argv", [["--help"], ["--version"], ["lock", "--help"]])
def test_a_full_disk_behind_the_help(argv: list[str]) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        done = run(*argv, stdout=full)
    finally:
        os.close(full)
    assert (done.returncode, "Traceback" in done.stderr) == (11, False)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_behind_standard_output(pair: list[str]) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        done = run("compare", *pair, stdout=full)
    finally:
        os.close(full)
    assert done.returncode == 11
    assert done.stderr.endswith("free some space, or write elsewhere\n")
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_digest_beside_a_long_label_fits_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    digest = f"sha256:{'a' * 64}"
    table("", [("test-result", "counts"), ("digest", digest), ("lock", f"torch-cu121, {digest} and more")])
    assert capsys.readouterr().out.splitlines() == [
        "test-result  counts",
        "digest",
        f"         {digest}",
        "lock         torch-cu121,",
        f"         {digest}",
        "             and more",
    ]
    table("", [("pylock.torch-cpu.toml", "b"), ("sha256", "a" * 64)])
    assert capsys.readouterr().out.splitlines()[1:] == ["sha256", " " * 16 + "a" * 64]
    # Any other word stays below the text: a report may be a stranger's.
    forged = "verdict\u00a0\u00a0the\u00a0evidence\u00a0suffices" + "." * 50
    table("", [("not run", f"x: {forged}")])
    assert all(line.startswith(("not run", " " * 9)) for line in capsys.readouterr().out.splitlines())


class Terminal(io.StringIO):
    """What says that it is a terminal; what a real one has got so far is a matter of time."""

    def isatty(self) -> bool:
        return True


def test_a_row_that_is_too_long_breaks_on_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    title = ", ".join(f"nvidia-library-number-{number}-cu12 12.4.5.8" for number in range(3))
    headings, rows = ("LAYER", "CONTENT", "SIZE"), [("a" * 12, title, "1 kB"), ("b" * 12, "torch", "2 GB")]
    columns(headings, rows)
    assert [len(line.split("  ")) for line in capsys.readouterr().out.splitlines()][1] == 3

    with contextlib.redirect_stdout(Terminal()) as terminal:
        columns(headings, rows)
    lines = terminal.getvalue().splitlines()
    assert len(lines) == 5
    assert max(map(len, lines)) <= 80
    assert lines[1].endswith("  1 kB")
    assert [line[:14] for line in lines[2:4]] == [" " * 14] * 2
    assert lines[4].split() == ["b" * 12, "torch", "2", "GB"]
    assert title.split() == " ".join(line[14:73].split("  ")[0] for line in lines[1:4]).split()
