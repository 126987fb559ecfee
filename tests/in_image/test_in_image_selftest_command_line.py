"""The options of the self-test program."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from torch_python import make_venv, program_of, run, write_program

import reprobuild.in_image.selftest.command_line  # noqa: F401 -- the checks are registered
from reprobuild.in_image.selftest.registry import (
    in_order,
)


def test_the_list_needs_no_torch_and_names_every_check_in_its_order(tmp_path: Path) -> None:
    done = run(Path(sys.executable), write_program(tmp_path), "--list")
    assert [line.split()[0] for line in done.stdout.splitlines()] == [check.name for check in in_order()]


@pytest.mark.parametrize("arguments", [["--only", "conv9d"], ["--device", "tpu"], ["rest"]])
def test_bad_arguments_are_refused(arguments: list[str], tmp_path: Path) -> None:
    assert run(Path(sys.executable), write_program(tmp_path), *arguments).returncode == 2


def test_the_text_names_what_failed(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "venv", torch=False)
    done = run(python, program_of(python))
    assert done.returncode == 1
    assert done.stdout.startswith("failed       cpu   imports")
    assert done.stdout.splitlines()[-1].startswith("failed in ")
