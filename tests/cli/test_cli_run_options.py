"""Options of programs in an image."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reprobuild.cli import run_options
from reprobuild.engines.cdi import GpuAccess
from support.small_images import NAME

if TYPE_CHECKING:
    from support.commands import Call  # pytest itself imports the plugin


pytest_plugins = ["support.commands", "support.small_images"]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["-e", "=x", NAME], "NAME=VALUE"),
        (["-v", "here", NAME], "SRC:DST"),
        (["-v", ".:relative", NAME], "DST an absolute path"),
        (["-v", ".:/x:yes", NAME], "SRC:DST:ro"),
        (["-it", "--rm", NAME], "not a terminal; omit -t"),
        (["--user", "a:b:c", NAME], "expected USER[:GROUP]"),
        (["-v", "nowhere:/x", NAME], "nowhere: no such file or folder; there are no named volumes"),
        (["-v", "./nowhere:/x", NAME], "./nowhere: no such file or folder\n"),
        (["-v", ".:/x", "-v", "/:/y/..//x/", NAME], "-v: /x is given twice"),
        (["-v", ".:/x/..", NAME], "DST is the image's root"),
        (["-m", "1", NAME], "-m 1: no program starts in less than 6M of memory; a number alone is bytes"),
        (["-m", "6143k", NAME], "in less than 6M of memory"),
        (["--pids-limit", "3", NAME], "--pids-limit 3: a run has at least 4 processes"),
        ([NAME, "--", "", "x"], "the command's first word is empty: expected a program"),
        ([NAME, ""], "the command's first word is empty"),
        ([NAME, "-w", "/"], "-w is after the image; options of `run` come before it"),
    ],
)
def test_bad_options_of_run(argv: list[str], words: str, handed_on: list[Any], call: Call) -> None:
    said = call("run", *argv)
    assert (said.status, said.out, handed_on) == (2, "", [])
    assert words in said.err


def test_gpus_are_handed_in_as_asked(
    handed_on: list[Any], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = call("run", "--gpu", "require", NAME)
    assert (said.status, handed_on) == (7, [])
    assert "no NVIDIA GPU on this machine" in said.err
    access = GpuAccess(devices=[])
    monkeypatch.setattr(run_options, "gpu_access", lambda: access)
    for choice in ("auto", "require", "off"):
        call("run", "--gpu", choice, NAME)
    assert [settings.gpu for _, _, settings in handed_on] == [access, access, None]


def test_a_folder_comes_after_the_one_that_it_lies_in() -> None:
    """As with `docker run`: in the other order, the outer one would hide it."""
    found = run_options.folders(("/usr:/out/in/side", "/etc:/other", "/var:/out"))
    assert [bind.destination for bind in found] == ["/other", "/out", "/out/in/side"]


def test_what_is_neither_a_file_nor_a_folder_is_not_copied(tmp_path: Path) -> None:
    """`twice` gives each run a copy of what can be written, and /dev/zero has no end."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    names = ("/dev/zero", tmp_path / "pipe", tmp_path / "file", tmp_path)
    found = run_options.folders(tuple(f"{name}:/x/{index}:rw" for index, name in enumerate(names)))
    assert [bind.writable for bind in found] == [False, False, True, True]
