"""``diff``: for people, for programs and for a pull request."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conftest import GOLDEN
from support.locks import LOCK

if TYPE_CHECKING:
    from support.commands import Call

pytest_plugins = ["support.commands"]


@pytest.fixture
def two(folder: Path) -> tuple[str, str]:
    """The golden lock, and one in which two packages and a variable moved."""
    python = [
        replace(p, version="2.4.2", wheel=replace(p.wheel, sha256="3" * 64, size=p.wheel.size + 3_000_000,
                                                  filename=p.wheel.filename.replace("2.4.1", "2.4.2")))
        if p.name == "torch" else p
        for p in LOCK.python if p.name != "sympy"
    ]  # fmt: skip
    new = replace(LOCK, python=python, variables={**LOCK.variables, "NCCL_ALGO": "a|b`c"})
    (folder / "old.toml").write_text(LOCK.dump())
    (folder / "pylock.new.toml").write_text(new.dump())
    return "old.toml", "pylock.new.toml"


def test_for_people(two: tuple[str, str], call: Call) -> None:
    said = call("diff", *two)
    assert (said.status, said.err) == (0, "")
    lines = [line.split() for line in said.out.splitlines()]
    assert lines[0] == ["MEANING", "KIND", "NAME", "OLD", "NEW", "SIZE"]
    assert ["can", "move", "numbers", "python", "torch", "2.4.1", "2.4.2", "+3.0", "MB"] in lines
    assert lines[3][:7] == ["can", "move", "behaviour", "python", "sympy", "1.13.2", "-"]
    assert said.out.splitlines()[-1].startswith("2 can move numbers, 1 can move behaviour; -")


def test_for_programs(two: tuple[str, str], call: Call) -> None:
    said = json.loads(call("diff", *two, "--json").out)
    assert said["old"] == LOCK.digest
    assert [c["name"] for c in said["changes"]] == ["NCCL_ALGO", "torch", "sympy"]
    assert said["changes"][1] | {"why": ""} == {
        "kind": "python", "name": "torch", "old": "2.4.1", "new": "2.4.2", "size": 3_000_000,
        "meaning": "numbers", "why": "",
    }  # fmt: skip


def test_for_a_pull_request(two: tuple[str, str], call: Call) -> None:
    text = call("diff", *two, "--markdown").out
    assert text.startswith("### Lock of torch-cu121: 3 changes\n")
    assert "| python | `torch` | `2.4.1` | `2.4.2` | +3.0 MB |" in text
    assert "| variable | `NCCL_ALGO` | `Ring` | `a\\|b'c` |" in text
    for row in (line for line in text.splitlines() if line.startswith("|")):
        assert row.replace("\\|", "").count("|") == 7


def test_nothing_to_say(folder: Path, call: Call) -> None:
    lock = str(GOLDEN / "pylock.torch-cu121.toml")
    assert call("diff", lock, lock).out == "the same\n"
    assert "nothing changed" in call("diff", lock, lock, "--markdown").out
    assert json.loads(call("diff", lock, lock, "--json").out)["changes"] == []


def test_a_request_means_its_lock(two: tuple[str, str], folder: Path, call: Call) -> None:
    (folder / "envs").mkdir()
    (folder / "envs/torch-cu121.toml").write_text('cuda = "12.1"\n')
    (folder / "envs/pylock.torch-cu121.toml").write_text(LOCK.dump())
    assert call("diff", "torch-cu121", "old.toml").out == "the same\n"


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["old.toml", "pylock.none.toml"], 4, "pylock.none.toml: no such file"),
        (["old.toml", "nothing"], 3, "envs/nothing.toml: no such file"),
        (["old.toml"], 2, "Missing argument 'NEW'"),
        (["old.toml", "old.toml", "--json", "--markdown"], 2, "excludes"),
        (["old.toml", "old.toml", "--", "true"], 2, "for --measure"),
        (["old.toml", "old.toml", "--no-network"], 2, "for --measure"),
        (["old.toml", "old.toml", "--gpu", "off"], 2, "for --measure"),
        (["old.toml", "old.toml", "--pids-limit", "10"], 2, "for --measure"),
    ],
)
def test_bad_arguments(
    two: tuple[str, str], call: Call, arguments: list[str], status: int, says: str
) -> None:
    said = call("diff", *arguments)
    assert (said.status, bool(said.out)) == (status, "--json" in arguments)
    assert says in said.err
