"""The line of the program that does something."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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


def test_a_draw_inside_of_what_numba_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "walk.py"
    source.write_text(
        "def step(n):\n    # random.rand(1) is what it does\n    x = n\n    return np.random.randint(0, x)\n"
        "def walk(n):\n    return step(n) + step(n)\n"
        "def start(drawn_at):\n    return drawn_at(), walk\n"
    )
    names: dict[str, Any] = {}
    exec(compile(source.read_text(), str(source), "exec"), names)
    for name in ("step", "walk"):
        names[name] = SimpleNamespace(py_func=names[name])
    start = names["start"]
    assert start(places.drawn_at)[0] == (str(source), 8, "start")
    monkeypatch.setitem(sys.modules, "numba", SimpleNamespace())
    assert start(places.drawn_at)[0] == (str(source), 4, "step")
    names["step"].py_func = names["walk"].py_func  # they call each other, and none draws
    assert start(places.drawn_at)[0] == (str(source), 8, "start")
