"""The line of the program that does something."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import pytest

from reprobuild.in_image.twice import places


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_known", {})


def test_what_belongs_to_the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert places.is_users(str(tmp_path / "train.py"))
    for other in (json.__file__, dataclasses.__file__, "<frozen importlib._bootstrap>", places.__file__):
        assert not places.is_users(other)
    assert not places.is_users("/srv/venv/lib/python3.11/site-packages/torch/x.py")
    monkeypatch.setattr(sys, "argv", ["train.py"])
    assert not places.is_users("<string>")
    assert not places.is_users("<class 'networkx.utils.decorators.argmap'> compilation 4")
    assert all(places.is_users(name) for name in ("<stdin>", "<ipython-input-3-f00>", "<dynamic-code>"))


def test_a_program_on_the_command_line_is_a_string(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["-c"])
    assert places.is_users("<string>")


def test_the_innermost_line_of_the_program() -> None:
    seen: list[tuple[str, int, str]] = []
    json.loads('{"a": 1}', object_hook=lambda _: seen.append(places.here()))
    assert seen[0][0] == __file__
    assert "places.here()" in places.text(seen[0])
