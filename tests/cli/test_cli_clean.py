"""``clean``: what it reports of what it removes."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
