"""``replay``: what is refused before anything runs. The rest is in tests/real/test_real_receipt.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reprobuild.cli import run_options
from reprobuild.errors import HostError, ImageError, RepeatError
from reprobuild.twice.receipt.project import machine_here
from support.receipts import table

if TYPE_CHECKING:
    from support.commands import Call  # pytest itself imports the plugin


pytest_plugins = ["support.commands", "support.small_images"]


@pytest.fixture
def paper(small_digest: str, tmp_path: Path) -> Path:
    """A receipt of a run in the small image; it read nothing, and nothing was in git."""
    image = {"name": "a:1", "digest": small_digest, "engine": "oci", "lock": ""}
    file = tmp_path / "paper.json"
    variables = {"SEED": "7", "HF_TOKEN": None}
    write(file, image=image, code=None, inputs=[], beside=[], variables=variables, machine=machine_here(None))
    return file


def write(file: Path, **changed: Any) -> None:
    file.write_text(json.dumps((json.loads(file.read_text()) if file.exists() else table()) | changed))


def lock_of(call: Call, paper: Path) -> None:
    """Put the lock of the image into the receipt, as the answer tells it."""
    told = call("replay", str(paper), "--check", "-e", "HF_TOKEN=x").out.splitlines()[0]
    image = json.loads(paper.read_text())["image"]
    write(paper, image={**image, "lock": told.rpartition("here from ")[2].replace("none", "")})


def test_nothing_runs_that_the_user_has_not_agreed_to(call: Call, paper: Path) -> None:
    lock_of(call, paper)
    checked = call("replay", str(paper), "--check", "-e", "HF_TOKEN=x")
    assert checked.out == "as it was: image, variables, code and data; nothing was run\n"
    assert checked.status == 0
    refused = call("replay", str(paper), "-e", "HF_TOKEN=x")
    assert refused.status == RepeatError.exit_code
    assert "replay runs a command that a file names, and was not told to" in refused.err
    assert "command   python3 train.py" in refused.err
    assert "HF_TOKEN=x" not in refused.err


def test_the_command_to_agree_to_is_shown_as_it_is_and_on_one_line(call: Call, paper: Path) -> None:
    hidden = "import os; os.system('echo EVIL')\n#\x1b[2K\x1b[1A\x1b[2K\rcommand   python3 t.py\x1b[8m"
    write(paper, command=["python3", "-c", hidden], variables={"SEED": "a\nnetwork   none\u200b\u202e\x9b1A"})
    lock_of(call, paper)
    shown = call("replay", str(paper)).err
    assert "os.system('\"'\"'echo EVIL'\"'\"')\\u000a#\\u001b[2K\\u001b[1A\\u001b[2K\\u000dcommand " in shown
    assert "SEED='a\\u000anetwork   none\\u200b\\u202e\\u009b1A'\n" in shown
    headings = [line.split()[0] for line in shown.splitlines()]
    ours = ["command", "image", "folder", "workdir", "user", "variable", "network"]
    assert headings == [*ours, "reprobuild:", "hint:"]


def test_a_name_with_a_line_break_makes_no_second_answer(call: Call, paper: Path) -> None:
    file = {"path": "/code/a\nas it was: all", "size": 1, "sha256": "0" * 64}
    write(paper, inputs=[file], beside=[file], variables={"A": "1"})
    lock_of(call, paper)
    found = call("replay", str(paper))
    assert found.out.startswith("input: /code/a\\u000aas it was: all: No such file or directory\nnote ")
    assert "\nas it was" not in found.out + found.err
    write(paper, folders=[{"destination": "/code", "source": "b\nas it was: all", "writable": True}])
    assert "\nas it was" not in call("replay", str(paper)).err


def test_what_is_not_as_it_was_is_the_first_line_and_in_json(call: Call, paper: Path) -> None:
    lock_of(call, paper)
    missing = call("replay", str(paper))
    assert missing.out.startswith("variable: HF_TOKEN is not set, a secret whose value is not in the receipt")
    found = json.loads(call("replay", str(paper), "--json", "-e", "HF_TOKEN=x", "-e", "A=1").out)
    assert found["changes"] == [{"what": "variable", "told": "A is set, and was not"}]
    assert not found["ran"]


def test_a_run_with_a_gpu_asks_for_one_and_names_another_choice(
    call: Call, paper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = "CUDA_VISIBLE_DEVICES=1"
    write(paper, gpu=True, machine=machine_here(chosen))
    lock_of(call, paper)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    same = call("replay", str(paper), "--check", "-e", "HF_TOKEN=x")
    assert (same.status, "note" in same.out) == (0, False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    other = call("replay", str(paper), "--check", "-e", "HF_TOKEN=x")
    assert f"chosen gpus {chosen}, here CUDA_VISIBLE_DEVICES=0" in " ".join(other.out.split())
    monkeypatch.setattr(run_options, "gpu_access", lambda: "no NVIDIA GPU on this machine")
    without = call("replay", str(paper), "--yes", "-e", "HF_TOKEN=x")
    assert without.status == HostError.exit_code
    assert "the receipt is of a run with a GPU: no NVIDIA GPU on this machine" in without.err
    assert "--check compares" in without.err
    assert "--gpu" not in without.err


def test_another_machine_is_a_note_before_a_run(call: Call, paper: Path) -> None:
    write(paper, machine={**machine_here(None), "processor": "Another", "driver": "1.2", "threads": "7"})
    lock_of(call, paper)
    found = " ".join(call("replay", str(paper), "--check", "-e", "HF_TOKEN=x").out.split())
    assert "another kind of machine: processor Another, here " in found
    assert "another kind of machine: driver 1.2, here " in found
    assert "threads" not in found


def test_a_receipt_that_cannot_be_followed_is_named(call: Call, paper: Path) -> None:
    write(paper, image={**json.loads(paper.read_text())["image"], "digest": "sha256:" + "9" * 64})
    absent = call("replay", str(paper))
    assert absent.status == ImageError.exit_code
    assert "the image of the receipt is not here" in absent.err
    assert "has no folder at /x" in call("replay", str(paper), "-v", ".:/x").err
    paper.write_text("{}")
    wrong = call("replay", str(paper))
    assert wrong.status == 2
    assert f"{paper}: not a receipt" in wrong.err


def test_an_image_of_another_engine_is_the_same_by_its_own_word_alone(call: Call, paper: Path) -> None:
    lock_of(call, paper)
    image = json.loads(paper.read_text())["image"]
    write(paper, image={**image, "digest": "sha256:" + "9" * 64, "engine": "docker"})
    said = call("replay", str(paper), "--check", "--image", image["digest"], "-e", "HF_TOKEN=x")
    assert said.status == 0
    assert "of the same lock by its own word: `reprobuild check`" in " ".join(said.out.split())
