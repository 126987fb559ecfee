"""Groups that include groups, and the Pythons of each line."""

from __future__ import annotations

from typing import Any

import pytest
from packaging.specifiers import SpecifierSet

from reprobuild.errors import RequestError
from reprobuild.imports.group_pythons import checked_groups, group_entries, group_pythons

DATA: dict[str, Any] = {
    "dependency-groups": {
        "Top": ["a", {"include-group": "middle_one"}],
        "Middle.One": [{"include-group": "low"}, "b"],
        "low": ["c"],
    }
}
SETTINGS = {
    "top": {"requires-python": "<3.15"},
    "middle_one": {"requires-python": ">=3.11"},
    "LOW": {"requires-python": ">=3.12"},
}


def test_a_line_has_the_pythons_of_all_groups_that_it_is_in() -> None:
    groups = checked_groups(DATA, "here")
    assert [*groups] == ["top", "middle-one", "low"]
    assert [(text, str(pythons)) for text, pythons in group_entries(groups, "top", SETTINGS)] == [
        ("a", "<3.15"),
        ("c", "<3.15,>=3.11,>=3.12"),
        ("b", "<3.15,>=3.11"),
    ]
    assert [str(pythons) for _, pythons in group_entries(groups, "low", {})] == [""]


def test_a_group_is_for_the_pythons_of_all_that_it_includes() -> None:
    groups = checked_groups(DATA, "here")
    assert group_pythons(groups, "top", SETTINGS) == SpecifierSet("<3.15,>=3.11,>=3.12")
    assert group_pythons(groups, "low", SETTINGS) == SpecifierSet(">=3.12")


@pytest.mark.parametrize("lines", [[{"include-group": "g"}], [{"include-group": "none"}], [7], ["a b"], 7])
def test_a_group_that_has_no_meaning_is_refused(lines: object) -> None:
    with pytest.raises(RequestError, match=r"here: dependency-groups\.g"):
        checked_groups({"dependency-groups": {"g": lines}}, "here")
