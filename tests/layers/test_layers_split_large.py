"""In which part of a large package a file goes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprobuild.layers.split_large import PART_BYTES, cut, parts_of

LARGE = 16_000_000

SIZES = st.dictionaries(st.text("ab/.", min_size=1, max_size=9), st.integers(0, 4 * LARGE), min_size=1)


@pytest.mark.parametrize(
    ("size", "parts"), [(1, 1), (PART_BYTES, 1), (PART_BYTES + 1, 2), (3 * PART_BYTES, 3)]
)
def test_in_how_many(size: int, parts: int) -> None:
    assert parts_of(size, PART_BYTES) == parts


def test_a_large_file_goes_where_there_is_least_and_small_neighbours_stay_together() -> None:
    sizes = {
        "a.py": 5,
        "lib/big": 30 * LARGE,
        "lib/half": 14 * LARGE,
        "lib/other": 15 * LARGE,
        "x/1": 1,
        "x/2": 1,
    }
    assert cut(sizes, ["a.py"], 2) == {
        "a.py": 0,
        "lib/big": 1,
        "lib/other": 0,
        "lib/half": 0,
        "x/1": 0,
        "x/2": 0,
    }


@given(SIZES, st.integers(1, 5), st.data())
def test_every_file_is_in_one_part_whatever_their_order(
    sizes: dict[str, int], parts: int, data: st.DataObject
) -> None:
    first = data.draw(st.lists(st.sampled_from(sorted(sizes)), unique=True))
    found = cut(sizes, first, parts)
    assert found.keys() == sizes.keys()
    assert set(found.values()) <= set(range(parts))
    assert all(found[path] == 0 for path in first)
    shuffled = data.draw(st.permutations(sorted(sizes)))
    assert cut({path: sizes[path] for path in shuffled}, first[::-1], parts) == found


@given(SIZES, st.integers(1, 5))
def test_no_part_has_more_than_its_share_and_one_file(sizes: dict[str, int], parts: int) -> None:
    loads = [0] * parts
    for path, part in cut(sizes, [], parts).items():
        loads[part] += sizes[path]
    assert max(loads) <= sum(sizes.values()) / parts + max(*sizes.values(), 2 * LARGE)
