"""``clean``: what it reports of what it removes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from reprobuild.host.home import Home

if TYPE_CHECKING:
    from support.commands import Call  # pytest itself imports the plugin


pytest_plugins = ["support.commands", "support.small_images"]


def test_clean_says_what_of_it_was_unpacked(small_digest: str, call: Call) -> None:
    root = Home.from_environment().folder("roots") / ("0" * 64)
    root.mkdir()
    (root / "x").write_bytes(bytes(5_000_000))
    said = call("clean").out
    assert said.endswith(", 5.0 MB of it layers unpacked for running\n")
    assert not root.exists()


@pytest.mark.parametrize("name", ["layers/ff.json", "layers/ff.plan", "built/ff.json"])
def test_clean_waits_for_no_pipe_in_the_home_and_removes_it(name: str, call: Call) -> None:
    pipe = Home.from_environment().root / name
    pipe.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(pipe)
    assert call("clean").status == 0
    assert not pipe.exists()
