"""References of base images."""

from __future__ import annotations

import pytest

from reprobuild.request.reference import Reference


@pytest.mark.parametrize(
    ("text", "name", "wanted"),
    [
        ("python", "docker.io/library/python", "latest"),
        ("python:3.11-slim", "docker.io/library/python", "3.11-slim"),
        ("team/base", "docker.io/team/base", "latest"),
        ("localhost/base", "localhost/base", "latest"),
        ("r.example.org:5000/a/b/c:x", "r.example.org:5000/a/b/c", "x"),
        ("r.example.org/a:x@sha256:" + "0" * 64, "r.example.org/a", "sha256:" + "0" * 64),
    ],
)
def test_references(text: str, name: str, wanted: str) -> None:
    found = Reference.parse(text)
    assert found is not None
    assert (found.name, found.wanted) == (name, wanted)
    assert Reference.parse(str(found)) == Reference.parse(str(Reference.parse(str(found))))


@pytest.mark.parametrize(
    "text",
    ["", "A", "a b", "a:", "a:b:c", "https://r.example.org/a", "a@sha256:12", "/a", "a//b", "Team/base"],
)
def test_what_is_no_reference(text: str) -> None:
    assert Reference.parse(text) is None
