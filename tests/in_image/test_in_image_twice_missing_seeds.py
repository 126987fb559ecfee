"""Which line leaves a seed out, of real calls of a program on disk."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from reprobuild.in_image.twice.missing_seeds import left_out_at

HEAD = """
class Game:
    def __init__(self, size, seed=None):
        self.rng = default_rng(seed)

def make(seed=None, *, more=None):
    return Game(3, seed=seed)

def other(seed=None):
    seed = seed or 5
    return default_rng(seed)

def plain():
    return default_rng()

"""
told: list[Any] = []


def noted(*_: object) -> None:
    """Stand where a generator is made: keep which line is told."""
    frame: FrameType | None = sys._getframe(1)
    assert frame is not None
    told.append(left_out_at(frame))


@pytest.mark.parametrize(
    ("call", "line"),
    [
        ("Game(2)", 0),
        ("Game(2, None)", 0),
        ("make()", 0),
        ("make(\n    more=1,\n)", 0),
        ("Game(2, seed=5)", None),
        ("make(7)", None),
        ("other()", None),
        ("plain()", None),
        ("default_rng(None)", None),
        ("(lambda seed: Game(1, seed))(None)", 0),
    ],
)
def test_the_caller_that_gives_no_seed_is_told(call: str, line: int | None, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(f"{HEAD}def main():\n    {call}\n")
    spec = importlib.util.spec_from_file_location("program", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    told.clear()
    spec.loader.exec_module(module)
    vars(module)["default_rng"] = noted
    module.main()
    [found] = told
    first = len(HEAD.splitlines()) + 2
    assert found == (None if line is None else (str(path), first + line, found[2]))
