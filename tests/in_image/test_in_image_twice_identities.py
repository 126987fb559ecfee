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


def test_a_list_is_another_one_when_it_is_new() -> None:
    identities = Identities()
    values: list[Any] = [[], {}, ()]
    numbers = [identities.number_of(each) for each in values]
    assert [identities.number_of(each) for each in values] == numbers
    assert identities.number_of(values[0], new=True) not in numbers
    assert identities.number_of(values[1]) == numbers[1]


def test_what_has_the_address_of_a_list_is_no_list() -> None:
    """Nor is it the list, where Python can watch it."""
    identities = Identities()
    number = identities.number_of([])
    [address] = identities._known
    things: list[Any] = [Thing(), {}]
    for thing in things:
        identities._known[id(thing)] = identities._known[address]  # as if it had that address
        assert identities.number_of(thing) != number
