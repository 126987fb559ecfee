"""An object has one number, and none has that of another one."""

from __future__ import annotations

import gc
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reprobuild.in_image.twice.identities import Identities


class Thing:
    pass


@given(st.lists(st.sampled_from(("new", "drop", "ask")), max_size=60))
def test_numbers_are_of_one_object_each(steps: list[str]) -> None:
    identities, kept, given_out = Identities(), dict[int, Any](), set[int]()
    for step in steps:
        if step == "new":
            thing = Thing()
            number = identities.number_of(thing)
            assert number is not None
            assert number not in given_out
            given_out.add(number)
            kept[number] = thing
            del thing
        elif step == "drop" and kept:
            kept.popitem()
            gc.collect(0)
        else:
            assert all(identities.number_of(each) == number for number, each in kept.items())


def test_an_address_that_was_given_again_is_another_object() -> None:
    identities = Identities()
    numbers = [identities.number_of(Thing()) for _ in range(100)]
    assert len(set(numbers)) == 100


def test_lists_and_dicts_have_none() -> None:
    values: list[Any] = [[], {}, (), "text", 5]
    assert [Identities().number_of(each) for each in values] == [None] * 5
    assert Identities().number_of({1}) == 1
