"""Digests of values: equal for equal ones, another for each difference; none of the program's code runs."""

from __future__ import annotations

import array
import hashlib
import itertools
import os
import random
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from torch_python import need_torch, torch_python

from reprobuild.in_image.twice import line_values
from reprobuild.in_image.twice.held_values import can_be_pickled
from reprobuild.in_image.twice.line_values import (
    SMALL,
    digest,
    generators,
    shown,
)


class Point:
    kind = "point"

    def __init__(self, x: Any) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        raise AssertionError("nothing of the program's own runs")

    def __hash__(self) -> int:
        raise AssertionError("nothing of the program's own runs")

    def __repr__(self) -> str:
        raise AssertionError("nothing of the program's own runs")

    @property
    def computed(self) -> int:
        raise AssertionError("nothing of the program's own runs")


class Slotted:
    __slots__ = ("x",)

    def __init__(self, x: Any) -> None:
        self.x = x


def endless() -> list[Any]:
    found: list[Any] = [1]
    found.append(found)
    return found


class Measured(float):
    """A number of a kind of its own, as the recorder makes of times."""


class Counted(int):
    """As above, a whole number."""


MAKERS: list[Callable[[int], Any]] = [
    lambda n: n + 5000,
    lambda n: n / 7,
    lambda n: Measured(n / 7),
    lambda n: f"text {n}",
    lambda n: b"%d" % n,
    lambda n: [1, [2, (n, 3)]],
    lambda n: {"a": {"b": n}},
    lambda n: {n: 1},
    lambda n: {1, 2, n + 9},
    lambda n: deque([n, 1]),
    lambda n: list(range(n, n + 500)),
    lambda n: Point([n]),
    Slotted,
    lambda n: SimpleNamespace(a=Point(n)),
    range,
    random.Random,
    lambda n: [Point(1)] * n,
]


@pytest.mark.parametrize("make", MAKERS)
def test_each_difference_gives_another_digest(make: Callable[[int], Any]) -> None:
    assert digest(make(1)) == digest(make(1))
    assert digest(make(1)) != digest(make(2))


def test_order_counts_where_it_is_part_of_the_value() -> None:
    assert digest([1, 2]) != digest([2, 1])
    assert digest({"a": 1, "b": 2}) != digest({"b": 2, "a": 1})
    assert digest({"one", "two", "three"}) == digest({"three", "two", "one"})


def test_what_differs_in_each_process_does_not_count() -> None:
    assert digest(threading.Lock()) == digest(threading.Lock())
    assert digest(threading.Thread(target=print, args=(1,))) == digest(
        threading.Thread(target=len, args=(1,))
    )
    assert digest(threading.Thread(args=(1,))) != digest(threading.Thread(args=(2,)))
    assert (digest(random), digest(print), digest(Point)) == ("", "", "")
    assert digest(object()) == digest(object())


class Bare(array.array):  # type: ignore[type-arg]
    __slots__ = ()

    def __reduce__(self) -> Any:
        raise AssertionError("nothing of the program's own runs")


def test_an_object_of_a_library_in_c_counts_by_its_pickle() -> None:
    assert not can_be_pickled(Bare("d"))
    assert digest(Bare("d")) == digest(Bare("d"))
    one, other = (itertools.count(start) for start in (1, 2))
    assert can_be_pickled(array.array("d"))
    assert digest(array.array("d", [1.0])) == digest(array.array("d", [1.0]))
    assert digest(array.array("d", [1.0])) != digest(array.array("d", [2.0]))
    assert not can_be_pickled(Point(1))
    assert not can_be_pickled(Slotted(1))
    assert (digest(one) == digest(one), digest(other) == digest(other)) == (True, True)
    assert next(one) == 1  # nothing was taken from it


def test_endless_and_large_values_end() -> None:
    assert digest(endless()) == digest(endless())
    many = [Point(number) for number in range(line_values.MOST_NODES)]
    assert digest(many) == digest([*many])
    assert digest(many) != digest([Point(-1), *many[1:]])


def test_a_number_of_a_kind_of_its_own_is_a_number() -> None:
    assert digest(Measured(0.5)) == digest(0.5)
    assert shown(Measured(0.5)) == "0.5"
    assert digest(Counted(5)) == digest(5)


def test_small_values_are_marked() -> None:
    given: list[Any] = [0, True, None, 999, 1000, 0.5, "", []]
    assert [digest(each).startswith(SMALL) for each in given] == [
        *(True, True, True, True, False, False, False, False)
    ]


def test_what_a_reader_sees() -> None:
    assert [shown(each) for each in (1.5, "a" * 99, [1, 2], [Point(1)], list(range(9)))] == [
        *("1.5", repr("a" * 60)[:60], "[1, 2]", "", "[0, 1, 2, 3, 4, 5, …]")
    ]


def test_states_of_generators() -> None:
    before = random.getstate()
    try:
        random.seed(1)
        one = generators()["random"]
        random.random()
        assert generators()["random"] != one
        random.seed(1)
        assert generators()["random"] == one
    finally:
        random.setstate(before)


TORCH = """
import numpy as np, torch
from reprobuild_twice.line_values import digest, generators, shown
assert digest(np.arange(3)) != digest(np.arange(3.0))
big = np.zeros(1 << 20)
other = big.copy()
other[-1] = 1
assert digest(big) == digest(big.copy()) and digest(big) != digest(other)
assert digest(np.array([{"a": 1}, None], object)) != digest(np.array([{"a": 2}, None], object))
t = torch.arange(6.0)
assert digest(t) == digest(t.clone()) and digest(t) != digest(t + 1) and digest(t) != digest(t.view(2, 3))
assert digest(t.bool()) == digest(t.bool()) and digest(t.bfloat16()) != digest((t + 1).bfloat16())
weight = torch.nn.Parameter(t.clone())
before = digest(weight)
weight.grad = torch.ones(6)
assert digest(weight) != before
torch.manual_seed(0)
layer = torch.nn.Linear(2, 2)
torch.manual_seed(0)
assert digest(layer) == digest(torch.nn.Linear(2, 2)) and digest(layer) != digest(torch.nn.Linear(2, 2))
assert digest(np.random.default_rng(1)) != digest(np.random.default_rng(2))
assert digest(np.random.RandomState(1)) != digest(np.random.RandomState(2))
assert digest(torch.Generator().manual_seed(1)) != digest(torch.Generator().manual_seed(2))
states = generators()
np.random.rand()
torch.rand(1)
after = generators()
assert set(states) == {"random", "numpy.random", "torch"}
assert [name for name in states if states[name] != after[name]] == ["numpy.random", "torch"]
assert torch.equal(torch.rand(3), torch.rand(3)) is False
assert shown(np.arange(9)) == "[0, 1, 2, 3]" and shown(t) == "[0.0, 1.0, 2.0, 3.0]"
assert digest(torch.empty(2, 2, device="meta")) == digest(torch.empty(2, 2, device="meta"))
"""


@pytest.mark.slow
@pytest.mark.torch
def test_arrays_tensors_and_their_generators(tmp_path: Path) -> None:
    need_torch()
    (tmp_path / "reprobuild_twice").symlink_to(line_values.__file__.rpartition("/")[0])
    command = [torch_python(), "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{TORCH}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), sys.executable


FRAMES = """
import sys
import datetime
import pandas as pd
import polars as pl
from reprobuild_twice.line_values import digest
frames = [pd.DataFrame({"a": [1.0, 2.0], "b": [x, 4.0]}) for x in (3.0, 3.0, 5.0)]
for each in (frames, [frame["b"] for frame in frames], [frame.set_index("b").index for frame in frames]):
    first, same, other = map(digest, each)
    print(first == same != other)
day, many = datetime.date(2026, 1, 1), 5000  # a column that has to be read value by value hides no other one
frames = [pl.DataFrame({"a": [day] * many, "b": [*range(many - 1), x]}) for x in (3, 3, 5)]
class Thing:
    pass
kinds = {"a": pl.Object, "b": pl.Int64}
objects = [pl.DataFrame({"a": [Thing()], "b": [x]}, schema=kinds) for x in (3, 3, 5)]
for each in (frames, [frame["b"] for frame in frames], objects):
    first, same, other = map(digest, each)
    print(first == same != other)
"""


@pytest.mark.slow
@pytest.mark.torch
def test_tables_count_by_what_they_hold(tmp_path: Path) -> None:
    need_torch()
    (tmp_path / "reprobuild_twice").symlink_to(Path(line_values.__file__).parent)
    env = {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [torch_python(), "-c", FRAMES], capture_output=True, text=True, env=env, check=False
    )
    if "No module named" in done.stderr and not os.environ.get("CI"):
        pytest.skip(f"the Python with torch: {done.stderr.splitlines()[-1]}")
    assert done.stdout.split() == ["True"] * 6, done.stderr


def test_a_set_counts_without_its_order_and_a_large_one_of_objects_by_its_length() -> None:
    class Thing:
        def __init__(self, number: int) -> None:
            self.number = number

    def things(count: int, first: int = 0) -> set[Thing]:
        return {Thing(number) for number in range(first, first + count)}

    few, many = 20, line_values.LARGE_SET + 1
    assert line_values.digest(things(few)) == line_values.digest(things(few))
    assert line_values.digest(things(few)) != line_values.digest(things(few, first=1))
    assert line_values.digest(things(many)) == line_values.digest(things(many, first=1))
    assert line_values.digest(things(many)) != line_values.digest(things(many + 1))
    words = [f"word {number}" for number in range(2000)]
    assert line_values.digest(set(words)) == line_values.digest({*reversed(words)})
    assert line_values.digest(set(words)) != line_values.digest({*words[1:], "word"})


def test_a_hash_counts_by_what_it_was_given() -> None:
    for kind in ("sha256", "md5", "blake2b", "sha3_256"):
        one, other = hashlib.new(kind), hashlib.new(kind)
        assert line_values.digest(one) == line_values.digest(other)
        other.update(b"a")
        assert line_values.digest(one) != line_values.digest(other)
    assert line_values.digest(hashlib.shake_128()) == line_values.digest(hashlib.shake_128(b"a"))


def test_sets_in_sets_are_looked_at_once_in_all() -> None:
    """Objects of SQLAlchemy have sets of such objects, and so on."""

    class Table:
        def __init__(self, number: int) -> None:
            self.number, self.others = number, set[Table]()

    tables = [Table(number) for number in range(40)]
    for table in tables:
        table.others = set(tables)
    before = line_values.looked_at[0]
    found = line_values.digest(tables[0])
    assert line_values.looked_at[0] - before <= line_values.MOST_NODES + len(tables) * line_values.DEPTH
    tables[3].number = 99
    assert line_values.digest(tables[0]) != found
