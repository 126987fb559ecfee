"""Pins that cannot all be kept: the nearest set is named."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reprobuild.imports import target_system
from reprobuild.lock.reader import parse_lock
from support.index import Index

if TYPE_CHECKING:
    from support.commands import Call

pytest_plugins = ["support.commands", "support.family"]


@pytest.fixture(autouse=True)
def _ready(family: Index, apt: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_system, "architecture", lambda: "amd64")


def test_pins_that_do_not_fit_are_named_with_what_does(family: Index, call: Call) -> None:
    family.add("vision", "0.15", requires=["torch==2.0.1"])
    family.add("vision", "0.19", requires=["torch==2.4.1"])
    Path("requirements.txt").write_text("vision==0.15\nfilelock==1.0\n")
    said = call("lock", "--from", "requirements.txt", "--cuda", "12.1")
    assert said.status == 5
    assert "vision==0.15 cannot be kept with the others; vision 0.19 fits" in said.err
    assert "--loosen vision" in said.err
    said = call("lock", "--from", "requirements.txt", "--cuda", "12.1", "--loosen", "vision")
    assert said.status == 0, said.err
    locked = {p.name: p.version for p in parse_lock(Path("envs/pylock.work.toml").read_text(), "").python}
    assert (locked["vision"], locked["filelock"]) == ("0.19", "1.0")
    assert 'loosened = [\n    "vision==0.15",\n]' in Path("envs/work.toml").read_text()


def test_pins_that_contradict_one_another_are_told_from_those_that_torch_contradicts(
    family: Index, call: Call
) -> None:
    family.add("models", "4.31", requires=["tokens<0.14"])
    family.add("models", "4.35", requires=["tokens>=0.14"])
    for version in ("0.13", "0.14"):
        family.add("tokens", version)
    family.add("vision", "0.15", requires=["torch==2.0.1"])
    Path("requirements.txt").write_text("models==4.31\ntokens==0.14\n")
    said = call("lock", "--from", "requirements.txt", "--cuda", "12.1")
    assert said.status == 5
    assert "contradicts itself, with any PyTorch" in said.err
    assert "cannot be kept with the others" in said.err
    assert "correct the versions or names" not in said.err
    Path("requirements.txt").write_text("vision==0.15\n")
    assert "contradicts itself" not in call("lock", "--from", "requirements.txt", "--cuda", "12.1").err
