"""``run``: arguments and exit status of a program in an image."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reprobuild.engines.embedded import OciEngine
from reprobuild.engines.protocols import RunOptions
from reprobuild.host.limits import Limits
from reprobuild.host.sandbox import Bind
from reprobuild.in_image.kernels import records
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
        user=None,
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


def recorded(monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], object]) -> None:
    """Let a command that records choices of kernels write into its folder, as an image's own torch does."""

    def run(_: OciEngine, reference: str, argv: tuple[str, ...], options: RunOptions) -> int:
        bind = options.binds[-1]
        assert options.env["REPROBUILD_KERNELS"] == f"record:{bind.destination}"
        write(bind.source)
        return 0

    monkeypatch.setattr(OciEngine, "run", run)


KIND = {"torch": "2.13.0+cpu", "commit": "c0ffee", "cpu": "AVX2", "gpus": []}


def honest(folder: Path) -> None:
    (folder / "inductor/cache").mkdir(parents=True)
    (folder / "inductor/cache/44136f").write_text('{"cache": {}}')
    (folder / "kind.json").write_text(json.dumps(KIND))


def test_choices_of_kernels_are_written_to_a_file(
    call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(monkeypatch, honest)
    assert call("run", "--record-kernels", "made/choices.json", NAME, "--", "train").status == 0
    (found,) = records(Path("made/choices.json").read_text(), "made")
    assert found == {"schema": 1, "kind": KIND, "choices": {"inductor/cache/44136f": {"cache": {}}}}


@pytest.mark.parametrize(
    ("hostile", "reason"),
    [
        (lambda f: (f / "inductor/cache/55").symlink_to("/etc/hostname"), ""),
        (lambda f: (f / "inductor/cache/55").symlink_to(f.parents[2] / "secret.json"), ""),
        (lambda f: (f / "triton").symlink_to(f.parents[2]), ""),
        (lambda f: os.mkfifo(f / "inductor/cache/55"), ""),
        (lambda f: (f / "kind.json").unlink(), "torch was not imported"),
        (lambda f: (f / "kind.json").write_text("{}"), "kind: expected the texts"),
        (lambda f: (f / "inductor/cache/55").write_text("[" * 100_000), "nested too deeply"),
        (lambda f: (f / "inductor/cache/55").write_text("{"), "no choices of kernels to record"),
        (lambda f: (f / "inductor/cache/55").write_bytes(b"\xff"), "no choices of kernels to record"),
        (lambda f: (f / "inductor/cache/55").write_text(" " * (3 << 20)), "more than 2,097,152 bytes"),
    ],
)
def test_what_a_command_leaves_in_their_place_is_not_trusted(
    hostile: Callable[[Path], object],
    reason: str,
    call: Call,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It ran in the image; the file is for the repository, so nothing of this machine may get into it."""

    def write(made: Path) -> None:
        (made.parents[2] / "secret.json").write_text('{"token": "secret"}')
        honest(made)
        hostile(made)

    recorded(monkeypatch, write)
    said = call("run", "--record-kernels", "choices.json", NAME, "--", "train")
    if reason:
        assert (said.status, Path("choices.json").exists()) == (10, False)
        assert reason in said.err
    else:
        assert said.status == 0
        assert [*records(Path("choices.json").read_text(), "")[0]["choices"]] == ["inductor/cache/44136f"]
