"""What objects hold, found without running anything of the program's."""

from __future__ import annotations

import random
from typing import Any

import pytest

from reprobuild.in_image.twice.held_values import MISSING, find, part_of, state_of


class Point:
    kind = "point"

    def __init__(self, x: Any) -> None:
        self.x = x

    @property
    def computed(self) -> int:
        raise AssertionError("nothing of the program's own runs")

    def __getitem__(self, _: object) -> int:
        raise AssertionError("nothing of the program's own runs")


class Slotted:
    __slots__ = ("x",)

    def __init__(self, x: Any) -> None:
        self.x = x


def test_paths_are_followed_without_properties() -> None:
    names = {"p": Point(Point(3))}
    assert find(("p", "x", "x"), names, {}) == 3
    assert find(("p", "kind"), names, {}) == "point"
    assert find(("p", "computed"), names, {}) is names["p"]
    assert find(("q",), names, {"q": 7}) == 7
    assert find(("r", "x"), names, {}) is MISSING
    assert find(("s", "x"), {"s": Slotted(4)}, {}) == 4


def test_the_state_of_a_generator() -> None:
    own = random.Random(1)
    assert state_of(own) == own.getstate()
    assert state_of(5) is MISSING


@pytest.mark.parametrize(
    ("value", "name", "part"),
    [
        ([1, 2], 1, 2),
        ([1, 2], 2, MISSING),
        ({"a": 1}, "a", 1),
        ({"a": 1}, "b", MISSING),
        (Point(5), "x", 5),
        (Slotted(6), "x", 6),
        (Point(5), "computed", MISSING),
        (Point(5), 0, MISSING),
    ],
)
def test_a_part_of_a_value(value: object, name: int | str, part: object) -> None:
    assert part_of(value, name) == part
