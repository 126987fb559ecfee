from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reprobuild.oci.path_index import PathIndex

paths = st.lists(st.sampled_from("ab"), min_size=1, max_size=4).map("/".join)


def folders_of(path: str) -> set[str]:
    parts = path.split("/")
    return {"/".join(parts[:end]) for end in range(1, len(parts))}


@given(st.lists(st.tuples(st.booleans(), paths)))
def test_what_is_below_a_folder_is_given_once(steps: list[tuple[bool, str]]) -> None:
    index, there = PathIndex(), set[str]()
    for added, path in steps:
        if added:
            index.add(path)
            there |= {path, *folders_of(path)}
        else:
            below = {each for each in there if each.startswith(f"{path}/")}
            assert sorted(index.take_below(path)) == sorted(below)
            there -= below
