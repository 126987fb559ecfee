"""The command ``check``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from reprobuild.errors import ImageError
from support.two_archives import run

if TYPE_CHECKING:
    from support.commands import Call

pytest_plugins = ["support.commands", "support.evident", "support.two_archives"]


def test_an_image_that_is_not_ours(pair: tuple[str, str]) -> None:
    done = run("check", pair[0])
    assert isinstance(done.exception, ImageError)
    assert "not an image made by reprobuild" in done.exception.message


def test_its_json_names_the_tree_and_what_is_not_as_locked(image: str, call: Call) -> None:
    """`call` holds it to its schema, which the tests of the engines have no other way to keep."""
    said = call("check", "team/toy:1", "--json", "--gpu", "off")
    found = json.loads(said.out)
    assert said.status == (13 if found["differences"] else 0)
    assert found["image"] == "team/toy:1"
    assert (found["report"] is None) == bool(found["differences"])
    assert call("export", "team/toy:1", "toy.tar").status == 0
    again = json.loads(call("check", "toy.tar", "--json").out)
    assert (again["tree"], again["report"]) == (found["tree"], None)
