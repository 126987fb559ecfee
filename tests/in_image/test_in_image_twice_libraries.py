"""What libraries give and no Python computes, by stand-ins for Polars' tables, and their generators."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from torch_python import need_torch, torch_python

from reprobuild import in_image
from reprobuild.in_image.twice import libraries
from reprobuild.in_image.twice.sources import Sources
from support.twice import recorded


class Kept(Sources):
    """Keeps the records."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[dict[str, Any]] = []

    def write(self, record: dict[str, Any]) -> None:
        self.kept.append(record)


def table(order: list[int]) -> Any:
    """Return a class of tables that keep no order: they give another one each time."""

    class DataFrame:
        schema, shape, dtypes = "a: int", (3, 1), ("int",)

        def __init__(self, rows: list[int]) -> None:
            self.rows = rows

        def head(self, _: int) -> DataFrame:
            return self

        def hash_rows(self, *, seed: int) -> Any:
            return SimpleNamespace(
                to_numpy=lambda: SimpleNamespace(tobytes=lambda: bytes([seed, *self.rows]))
            )

        def unique(self) -> DataFrame:
            order.append(order.pop(0))
            return DataFrame([self.rows[at] for at in order])

    return DataFrame


def test_a_table_is_told_with_what_it_was_made_from() -> None:
    sources, kind = Kept(), table([0, 1, 2])
    libraries._polars(sources, SimpleNamespace(DataFrame=kind))
    one = kind([5, 6, 7])
    one.unique().unique()
    one.unique()
    shown = [each["shown"].split() for each in sources.kept]
    assert {each["name"] for each in sources.kept} == {"polars.DataFrame.unique"}
    assert sources.kept[0]["place"][3] == "one.unique().unique()"
    (_, _, first, _, given), (_, _, _, _, again), (_, _, third, _, same) = shown
    assert (again, same) == (first, given)
    assert third != first


def test_what_cannot_be_hashed_fails_no_program(capsys: Any) -> None:
    sources, kind = Kept(), table([0])
    kind.hash_rows = kind.shape = None
    libraries._polars(sources, SimpleNamespace(DataFrame=kind))
    assert kind([3]).unique().rows == [3]
    assert sources.kept == []
    assert "a table is not recorded" in capsys.readouterr().err


def test_an_experiment_freezes_a_moment_in_its_time_zone() -> None:
    class Frozen(Kept):
        def note(self, *_: Any, **__: Any) -> Any:
            return 1_000_000_000.5

    bound = vars(datetime)["now"].__get__
    now: Any = classmethod(libraries._moment(Frozen(), bound, "datetime.datetime.now"))
    assert now.__get__(None, datetime)(UTC) == datetime(2001, 9, 9, 1, 46, 40, 500000, UTC)
    told = Kept()
    now = classmethod(libraries._moment(told, bound, "datetime.datetime.now"))
    moment = now.__get__(None, datetime)()
    assert [(each["kind"], each["shown"]) for each in told.kept] == [("clock", repr(moment)[:60])]


LIBRARY = """
from random import Random
own = Random()
def name():
    return own.choice("abc")
def number():
    return Random().randrange(10**9)  # a new one each time, often at the last one's address
"""
PROGRAM = """
import sys
sys.path[:0] = sys.argv[1:3]
from twice import pins, sources, watching
watcher = watching.Watcher()
if len(sys.argv) > 3:
    import os
    os.environ["REPROBUILD_TWICE_PIN"] = f"draw\\t{sys.argv[3]}\\t{__file__}"
    pins.install(watcher)
else:
    kept = sources.Sources()
    kept.write = lambda record: record.get("kind") == "draw" and print(record["name"], record["place"][1])
    sources.install(watcher, kept)
import faked
drawn = [faked.name() for _ in range(40)]
new = {faked.number() for _ in range(40)} if len(sys.argv) > 4 else ()
if len(sys.argv) > 3:
    print(*drawn, *new)
"""


def test_draws_from_a_librarys_own_generator_have_the_line_of_the_program(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    site.mkdir()
    (site / "faked.py").write_text(LIBRARY)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    line = 1 + PROGRAM.splitlines().index("drawn = [faked.name() for _ in range(40)]")
    command = [sys.executable, str(program), str(Path(in_image.__file__).parent), str(site)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert set(told) == {f"random.Random.choice in faked:5 {line}"}
    pinned = [subprocess.run([*command, str(line)], capture_output=True, check=True).stdout for _ in range(2)]
    assert pinned[0] == pinned[1]
    assert len(set(pinned[0].split())) > 1
    command += [str(line + 1), "new"]
    new = [subprocess.run(command, capture_output=True, check=True).stdout.split()[40:] for _ in range(2)]
    assert new[0] == new[1]
    assert len(new[0]) == 1, "each is seeded the same"


def test_a_new_array_counts_where_the_program_itself_makes_it() -> None:
    array = SimpleNamespace(dtype=SimpleNamespace(hasobject=False), nbytes=3, tobytes=lambda: b"abc")
    module = SimpleNamespace(empty=lambda *_: array, empty_like=lambda *_: array)
    sources = Kept()
    libraries._numpy(sources, module)
    for draw in (module.empty,):
        draw(3)  # as C code of NumPy's does, which has no frame: the line is that of a generator's random()
    assert sources.kept == []
    module.empty(3)
    assert [(each["kind"], each["name"]) for each in sources.kept] == [("memory", "numpy.empty")]


LAZY = """
import polars as pl


def clean(frame):
    return frame.lazy().unique()


plan = clean(pl.DataFrame({"a": [1, 2, 3]})).with_columns(b=pl.lit(1))
print(plan.collect().shape)
print(plan.sort("a").collect().shape)
"""


@pytest.mark.slow
@pytest.mark.torch
def test_of_a_plan_of_polars_the_line_is_told_that_loses_its_order(tmp_path: Path) -> None:
    need_torch()
    program, folder = tmp_path / "program.py", tmp_path / "run"
    program.write_text(LAZY)
    folder.mkdir()
    run = recorded(torch_python(), [str(program)])
    done = run(folder, {"REPROBUILD_TWICE_EVERY": "1", "REPROBUILD_TWICE_TRACE": "0-0"}, None)
    if b"No module named 'polars'" in done.stderr and not os.environ.get("CI"):
        pytest.skip("the Python with torch has no Polars")
    assert done.status == 0, done.stderr
    lines = [line for path in (folder / "records").iterdir() for line in path.read_bytes().splitlines()]
    records = [json.loads(line) for line in lines if b'"name":"polars.' in line]
    assert {each["name"] for each in records} == {"polars.LazyFrame.collect"}
    assert {each["place"][1] for each in records} == {6}


SEEDLESS = """
import sys

from sklearn.base import BaseEstimator, clone
from optuna.samplers._lazy_random_state import LazyRandomState


def make(seed):
    return BaseEstimator(
        seed
    ), LazyRandomState(seed)


for estimator in (make(None)[0], clone(make(None)[0]), make(7)[0]):
    estimator.fit()
for sampler in (make(None)[1], make(7)[1]):
    sampler.rng


def make_of(seed):
    found = BaseEstimator()
    if seed:
        found.random_state = seed
    return found


make_of(0).fit()
"""
SKLEARN = """
import random


class BaseEstimator:
    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self):
        return random.random()


def clone(estimator):
    return type(estimator)(estimator.random_state)
"""
OPTUNA = """
import os, random


class LazyRandomState:
    def __init__(self, seed=None):
        self._rng = seed

    def _set_rng(self):
        self._rng = random.SystemRandom().random()

    @property
    def rng(self):
        if self._rng is None:
            self._set_rng()
        return self._rng
"""


def test_what_draws_later_for_want_of_a_seed_is_told_where_it_was_made(tmp_path: Path) -> None:
    """It is drawn where an estimator is fitted, or a sampler first asked."""
    site = tmp_path / "site-packages"
    for name, text in (("sklearn/base", SKLEARN), ("optuna/samplers/_lazy_random_state", OPTUNA)):
        path = site / f"{name}.py"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    program = tmp_path / "program.py"
    program.write_text(SEEDLESS)
    run = recorded(sys.executable, [str(program)], env={"EXTRA": str(site)})
    program.write_text(f"import sys\nsys.path.append({str(site)!r})\n{SEEDLESS}")
    folder = tmp_path / "run"
    folder.mkdir()
    ran = run(folder, {"REPROBUILD_TWICE_TRACE": "0-0"}, None)
    assert ran.status == 0, ran.stderr
    records = [
        json.loads(line)
        for path in (folder / "records").glob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    lines = SEEDLESS.splitlines()
    made = 3 + lines.index("    return BaseEstimator(")
    told = [
        (each["kind"], each["place"][1], each["for"][1])
        for each in records
        if each.get("k") == "source" and each["kind"] in ("draw", "entropy")
    ]
    fitted = 2 + 1 + lines.index("    estimator.fit()")
    of_zero = 3 + lines.index("    found = BaseEstimator()")
    assert told == [
        *(("draw", made, 0), ("draw", made, 0), ("draw", fitted, 0), ("entropy", made + 2, 0)),
        ("draw", of_zero, of_zero + 1),
    ]


SPACES = """
import random


class Space:
    def __init__(self, low):
        self.low = low


class Box(Space):
    def sample(self):
        return self.low + random.random()
"""
ACTS = """

class Env:
    @property
    def action_space(self):
        return Box(1)


env, own = Env(), Box(2)
env.action_space.sample()
own.sample()
"""


def test_beside_what_is_drawn_from_a_space_the_line_that_made_it_is_told(tmp_path: Path) -> None:
    site = tmp_path / "site-packages/gymnasium"
    site.mkdir(parents=True)
    (site / "__init__.py").write_text("")
    (site / "spaces.py").write_text(SPACES)
    program = tmp_path / "program.py"
    text = f"import sys\nsys.path.append({str(site.parent)!r})\nfrom gymnasium.spaces import Box{ACTS}"
    program.write_text(text)
    folder = tmp_path / "run"
    folder.mkdir()
    ran = recorded(sys.executable, [str(program)])(folder, {"REPROBUILD_TWICE_TRACE": "0-0"}, None)
    assert ran.status == 0, ran.stderr
    records = [
        json.loads(line)
        for path in (folder / "records").glob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    lines = {line.strip(): number for number, line in enumerate(text.splitlines(), 1)}
    told = [
        (each["place"][1], each["for"][1]) for each in records if each.get("name", "").endswith("Box.sample")
    ]
    assert told == [
        (lines["env.action_space.sample()"], lines["return Box(1)"]),
        (lines["own.sample()"], lines["env, own = Env(), Box(2)"]),
    ]
