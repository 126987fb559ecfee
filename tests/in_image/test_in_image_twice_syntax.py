from __future__ import annotations

import ast

import pytest

from reprobuild.in_image.twice.syntax import made_by


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("self.jobs = queue.Queue()", {"jobs"}),
        ("a, b = Queue(), Lock()", {"a"}),
        ("q = Queue", set()),
    ],
)
def test_names_are_known_by_what_makes_their_values(text: str, names: set[str]) -> None:
    assert made_by(ast.parse(text), ("Queue",)) == names
