"""Which line leaves a seed out, of real calls of a program on disk."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from reprobuild.in_image.twice.missing_seeds import defaulted_at, left_out_at, takes_none

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

def guarded(size, rng=None):
    if rng is None:
        rng = default_rng()
    return rng

def chosen(rng=None):
    return default_rng() if rng is None else rng

def chosen_too(rng=None):
    return rng if rng is not None else default_rng()

def first(rng=None):
    return rng or default_rng()

def handed(size, *sizes, **options):
    return guarded(size, **options)

class Env:
    def reset(self, seed=None, options=None):
        return default_rng(seed)

def reduced(random_state=None):
    return PCA(n=3, random_state=random_state)

class PCA:
    def __init__(self, n, random_state):
        self.rng = default_rng()

def wrapped(env, *, seed=None, options=None):
    return env.reset(seed=seed, options=options)

class Optimiser:
    def __init__(self):
        self.rng = default_rng()

def leiden(random_state=0):
    optimiser = Optimiser()
    if random_state:
        optimiser.seed(random_state)

def either(seed):
    return default_rng(seed or None)

class Odd:  # has no truth when it is compared, as an array
    def __eq__(self, other):
        raise ValueError

def other_default(rng=None):
    if rng is None:
        rng = 3
    return default_rng()

"""
told: list[Any] = []
seeds = [False]


def noted(*_: object) -> None:
    """Stand where a generator is made: keep which lines are told."""
    frame: FrameType | None = sys._getframe(1)
    assert frame is not None
    place = frame.f_code.co_filename, frame.f_lineno or 0, frame.f_code.co_name
    told.append((left_out_at(frame), defaulted_at(place, is_seed=seeds[0])))


def called(call: str, tmp_path: Path, *, is_seed: bool = False) -> list[Any]:
    """Return what is told of a call, each line from the one of the call on."""
    seeds[:] = [is_seed]
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
    assert all(each is None or each[0] == str(path) for each in found)
    return [None if each is None else each[1] - first for each in found]


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
        ("wrapped(Env())", 0),
        ("wrapped(Env(), seed=3)", None),
    ],
)
def test_the_caller_that_gives_no_seed_is_told(call: str, line: int | None, tmp_path: Path) -> None:
    assert called(call, tmp_path) == [line, None]


@pytest.mark.parametrize(
    ("call", "line"),
    [
        ("guarded(2)", 0),
        ("guarded(\n    2,\n    rng=None,\n)", 0),
        ("handed(2)", 0),
        ("handed(2, 3, rng=None)", 0),
        ("chosen()", 0),
        ("chosen_too()", 0),
        ("first(None)", 0),
        ("other_default()", None),
        ("other_default(None)", None),
        ("plain()", None),
        ("Game(2)", None),
    ],
)
def test_of_a_default_for_none_the_one_that_gave_it_is_told_beside(
    call: str, line: int | None, tmp_path: Path
) -> None:
    assert called(call, tmp_path)[1] == line


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("RandomState(seed)", True),
        ("RandomState(seed=options.seed)", True),
        ("RandomState(None)", True),
        ("RandomState()", False),
        ("RandomState(options.other)", False),
        ("RandomState(options.seed or 3)", False),
        ("Random(seed)", False),
    ],
)
def test_a_seed_that_is_none_is_known_where_nothing_has_to_run_for_it(
    call: str, expected: bool, tmp_path: Path
) -> None:
    def noted(*_: object, **__: object) -> None:
        told.append(takes_none(sys._getframe(1), "RandomState"))

    path = tmp_path / "program.py"
    path.write_text(f"def main(seed, options):\n    return {call}\n")
    names = {"RandomState": noted, "Random": noted}
    exec(compile(path.read_text(), str(path), "exec"), names)
    told.clear()
    names["main"](None, SimpleNamespace(seed=None, other=3))
    assert told == [expected]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("leiden()", "    if random_state:"),
        ("reduced()", None),
        ("either(0)", "    return default_rng(seed or None)"),
        ("either(Odd())", None),
        ("either(None)", None),
        ("plain()", None),
    ],
)
def test_a_seed_of_0_that_counts_as_none_is_told(call: str, text: str | None, tmp_path: Path) -> None:
    call_line = len(HEAD.splitlines()) + 2
    told_at = called(call, tmp_path, is_seed=True)[1]
    zero = 1 + HEAD.splitlines().index(text) - call_line if text in HEAD.splitlines() else None
    of_caller = 0 if call in ("either(None)", "reduced()") else None
    assert told_at == (zero if zero is not None else of_caller)
