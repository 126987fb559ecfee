"""``run``: arguments and exit status of a program in an image."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reprobuild.engines.embedded import OciEngine
from reprobuild.engines.protocols import RunOptions
from reprobuild.host.limits import Limits
from reprobuild.host.sandbox import Bind
from support.small_images import NAME

if TYPE_CHECKING:
    from support.commands import Call  # pytest itself imports the plugin


pytest_plugins = ["support.commands", "support.small_images"]


def test_run_hands_on_what_it_is_told_and_the_status(
    handed_on: list[Any], call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERE", "yes")
    options = [
        "-e",
        "A=b=c",
        "-e",
        "HERE",
        "-e",
        "NOWHERE",
        "-v",
        f"{folder}:/work:ro",
        "-v",
        ".:/out",
        "-w",
        "/work",
        "--memory",
        "8G",
        "--pids-limit",
        "500",
        "--no-network",
    ]
    assert call("run", *options, NAME, "--", "python3", "train.py", "-v", "--lr", "1").status == 5
    [(reference, argv, settings)] = handed_on
    assert (reference, argv) == (NAME, ("python3", "train.py", "-v", "--lr", "1"))
    assert settings == RunOptions(
        env={"A": "b=c", "HERE": "yes"},
        binds=[
            Bind(source=folder, destination="/work", writable=False),
            Bind(source=folder, destination="/out", writable=True),
        ],
        network=False,
        gpu=None,
        workdir="/work",
        user="0:0",
        limits=Limits(memory=8 << 30, processes=500),
    )


@pytest.mark.parametrize("argv", [["--", "sh", "-c", "--"], ["sh", "-c", "--"]])
def test_the_dashes_before_the_command_may_be_left_out(
    argv: list[str], handed_on: list[Any], call: Call
) -> None:
    call("run", NAME, *argv)
    assert handed_on[0][1] == ("sh", "-c", "--")


def test_a_command_that_was_killed(small_digest: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OciEngine, "run", lambda *_, **__: -9)
    assert call("run", NAME, "true").status == 137
