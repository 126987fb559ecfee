"""An image's entry point, which runs before a user's program."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reprobuild.oci.tar_writer import Record
from support.checked import checked, found

TINI = "3a809bd78682d860096f95718e77db0d3bb6d8e93c38135036d6c5b4e857d275"
INIT = Record("usr/bin/tini", "file", 0o755, TINI)
DUMB = replace(
    INIT, path="usr/bin/dumb-init", content="3781e4f6292a20344b5e79b5f95379cb7aae8c5f4ebad0b8c625df14bac8fe83"
)
SHELL = ("-c", 'exec "$0" "$@"', "python3")


@pytest.mark.parametrize(
    "program",
    [
        ["/entry.sh"],
        ["/bin/sh", "-c", "OMP_NUM_THREADS=7 exec python3"],
        ["env", "OMP_NUM_THREADS=7", "python3"],
        ["python3", "-S", "train.py"],
        ["python3", "-Xfoo", "train.py"],
        ["/usr/bin/python3", "train.py"],
        ["python3.99", "train.py"],
        ["python3", "-X", "utf8", "-S", "train.py"],
        ["python3", "-I", "train.py"],  # which draws a hash seed of its own
        ["jupyter", "lab"],
        ["perl", "-e", "$ENV{OMP_NUM_THREADS} = 7; exec @ARGV"],
        ["/usr/bin/perl", "/opt/mine.pl"],
    ],
)
def test_an_entry_point_that_runs_before_python(program: list[str]) -> None:
    whole = checked(Entrypoint=program)
    assert [(each.path, each.kind) for each in whole.differences] == [("Entrypoint", "runs at start")]
    assert "Entrypoint" not in whole.beside


@pytest.mark.parametrize(
    "program",
    [
        ["python3", "/app/train.py"],
        ["/opt/venv/bin/python3", "-u", "-m", "train", "-S"],
        ["python3", "-c", "x", "-S"],
        ["torchrun", "--nproc-per-node", "2", "train.py"],
        ["bash"],
        [],
    ],
)
def test_an_entry_point_that_is_the_locked_python(program: list[str]) -> None:
    assert found(Entrypoint=program) == []


@pytest.mark.parametrize(
    ("program", "start"),
    [
        (["tini", "--"], ["tini", "--", "python3"]),
        (["/usr/bin/tini", "-sg", "-p", "SIGTERM", "-e143", "--"], None),
        (["tini", "-g", "--", "python3", "-um", "train"], ["tini", "-g", "--", "python3", "-u"]),
        (["tini", "python3"], ["tini", "python3"]),
        (["tini", "--", "torchrun", "--nproc-per-node=2"], ()),
        (["dumb-init", "--rewrite", "15:3", "-c", "--"], None),
        (["python3", "-X", "utf8", "/app/train.py"], ["python3", "-Xutf8"]),
        (["python3", "-m", "train"], ["python3"]),
        (["torchrun"], ()),
        (["bash"], ["bash", *SHELL]),
        ([], ()),
    ],
)
def test_the_words_by_which_it_starts_python(program: list[str], start: list[str] | tuple[()] | None) -> None:
    whole = checked(INIT, DUMB, Entrypoint=program)
    assert whole.differences == []
    assert list(whole.python_start) == list([*program, "python3"] if start is None else start)


@pytest.mark.parametrize(
    "program",
    [
        ["tini", "--", "/entry.sh"],
        ["tini", "-x", "--"],
        ["tini", "--", "env", "OMP_NUM_THREADS=7"],
        ["dumb-init", "sh", "-c", "python3"],
        ["/app/mine", "--"],
    ],
)
def test_an_init_that_starts_something_else(program: list[str]) -> None:
    mine = replace(INIT, path="app/mine", content="m")
    assert found(INIT, DUMB, mine, Entrypoint=program) == [("Entrypoint", "runs at start")]


@pytest.mark.parametrize(
    "init",
    [
        [replace(INIT, content="m")],
        [replace(INIT, mode=0o4755)],
        [replace(INIT, attributes="security.capability=00")],
        [replace(INIT, mode=0o644)],
        # execvp(3) goes on where it may not run what it has found.
        [replace(INIT, path="usr/local/bin/tini", mode=0o644), replace(INIT, content="m")],
        [replace(INIT, path="usr/local/bin/tini", mode=0o700), replace(INIT, content="m")],
        [replace(INIT, kind="link", content="/app/mine"), Record("app/mine", "file", 0o755, "m")],
    ],
)
def test_an_init_that_nobody_has_released(init: list[Record]) -> None:
    assert found(*init, Entrypoint=["tini", "--"]) == [("Entrypoint", "runs at start")]
