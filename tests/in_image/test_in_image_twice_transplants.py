"""Values of one run in the place of another's: what travels, what stays as it is, what is refused."""

from __future__ import annotations

import random
import subprocess
import threading
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from torch_python import need_torch, torch_python

from reprobuild.in_image.twice import transplants
from reprobuild.in_image.twice.transplants import dumped, give


class Item:
    def __init__(self, name: str, seen: int = 0) -> None:
        self.name, self.seen = name, seen


class Slots:
    __slots__ = ("name", "other")

    def __init__(self, name: str) -> None:
        self.name = name


class Square(NamedTuple):
    x: int
    occupant: str | None


def given(left: dict[str, Any], names: dict[str, Any], outer: dict[str, Any] | None = None) -> None:
    """Let names of one run have what those of another had."""
    give(dumped(left), [tuple(name.split(".")) for name in left], names, {} if outer is None else outer)


def test_what_tables_are_made_of_travels() -> None:
    names: dict[str, Any] = {"x": None}
    given({"x": [slice(0, 2), range(3), ...]}, names)
    assert names["x"] == [slice(0, 2), range(3), ...]


def test_values_take_their_places() -> None:
    names: dict[str, Any] = {"x": 1, "text": "a", "at": SimpleNamespace(y=1, rest=[2])}
    outer: dict[str, Any] = {"count": 3}
    given({"x": 5, "text": "b", "at.y": 6, "count": 7, "new": (1, 2)}, names, outer)
    assert (names["x"], names["text"], names["at"].y, outer["count"], names["new"]) == (5, "b", 6, 7, (1, 2))
    assert names["at"].rest == [2]


def test_containers_stay_the_ones_that_others_have() -> None:
    items, table, seen, raw = [1, 2], {"a": 1}, {1}, bytearray(b"ab")
    names: dict[str, Any] = {"items": items, "table": table, "seen": seen, "raw": raw}
    given({"items": [3], "table": {"b": 2, "a": 3}, "seen": {4}, "raw": bytearray(b"c")}, names)
    assert (items, list(table.items()), seen, bytes(raw)) == ([3], [("b", 2), ("a", 3)], {4}, b"c")
    assert names["items"] is items


def test_objects_are_the_other_run_s_own_in_the_order_that_was_kept() -> None:
    there = [Item(name) for name in "abc"]
    here = [Item(name) for name in "cba"]
    a = here[2]
    names: dict[str, Any] = {"items": here}
    given({"items": [there[1], there[0], there[2]]}, names)
    assert [item.name for item in names["items"]] == ["b", "a", "c"]
    assert names["items"][1] is a


def test_equal_objects_are_taken_one_by_one() -> None:
    here = [Item("a"), Item("a")]
    names: dict[str, Any] = {"items": [*here]}
    given({"items": [Item("a"), Item("a")]}, names)
    assert [id(item) for item in names["items"]] == [id(item) for item in here]


def test_an_object_that_only_one_run_has_is_a_copy_and_one_that_both_have_is_filled() -> None:
    item = Item("a", 1)
    names: dict[str, Any] = {"item": item, "items": []}
    given({"item": Item("a", 2), "items": [Item("z", 3)]}, names)
    assert (item.seen, names["item"] is item) == (2, True)
    assert [(each.name, each.seen) for each in names["items"]] == [("z", 3)]


def test_named_tuples_are_values_and_objects_with_slots_are_copied() -> None:
    names: dict[str, Any] = {"squares": [], "items": []}
    given({"squares": [Square(1, None)], "items": [Slots("a")]}, names)
    assert names["squares"] == [Square(1, None)]
    assert [(type(each), each.name, hasattr(each, "other")) for each in names["items"]] == [
        (Slots, "a", False)
    ]


def test_the_state_of_a_generator_is_set() -> None:
    one, other = random.Random(1), random.Random(2)
    names: dict[str, Any] = {"rng": other}
    given({"rng": one}, names)
    assert names["rng"] is other
    assert other.random() == random.Random(1).random()


def test_what_cannot_travel_is_refused() -> None:
    with pytest.raises(LookupError):
        given({"lock": threading.Lock(), "x": [threading.Lock()]}, {"x": [1]})
    names: dict[str, Any] = {"f": print}
    given({"f": print}, names)  # a function is its own
    assert names["f"] is print
    with pytest.raises(LookupError):
        given({"items": [(number for number in range(3))]}, {"items": []})


TORCH = """
import numpy as np, torch
from reprobuild_twice.transplants import dumped, give
def given(left, names):
    give(dumped(left), [tuple(name.split(".")) for name in left], names, {})
array = np.arange(3)
names = {"a": array, "t": torch.zeros(3)}
kept = names["t"]
given({"a": np.arange(3) * 2, "t": torch.ones(3)}, names)
assert array.tolist() == [0, 2, 4] and names["t"] is kept and kept.tolist() == [1, 1, 1]
given({"a": np.arange(5)}, names)
assert names["a"].tolist() == [0, 1, 2, 3, 4]
model = torch.nn.Linear(2, 2)
torch.manual_seed(1)
other = torch.nn.Linear(2, 2)
weight = model.weight
names = {"model": model}
torch.manual_seed(1)
try:
    given({"model": other}, names)
except LookupError:
    pass
else:
    raise AssertionError("a copy of a model trains nothing")
assert model.weight is weight
names = {"parameters": list(model.parameters())}
given({"parameters": list(model.parameters())[::-1]}, names)
assert names["parameters"][1] is weight
hidden = model(torch.ones(1, 2))
names = {"hidden": hidden}
given({"hidden": torch.full((1, 2), 7.0, requires_grad=True) * 1}, names)
assert names["hidden"] is hidden and hidden.tolist() == [[7, 7]]
hidden.sum().backward()
assert weight.grad is not None
rng = np.random.default_rng(2)
given({"rng": np.random.default_rng(1)}, {"rng": rng})
assert rng.random() == np.random.default_rng(1).random()
generator = torch.Generator().manual_seed(2)
given({"g": torch.Generator().manual_seed(1)}, {"g": generator})
expected = torch.rand(3, generator=torch.Generator().manual_seed(1))
assert torch.equal(torch.rand(3, generator=generator), expected)
"""


@pytest.mark.slow
@pytest.mark.torch
def test_arrays_models_and_generators(tmp_path: Any) -> None:
    need_torch()
    (tmp_path / "reprobuild_twice").symlink_to(transplants.__file__.rpartition("/")[0])
    command = [torch_python(), "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{TORCH}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
