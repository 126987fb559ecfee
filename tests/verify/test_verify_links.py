"""Paths in an image, links followed as Linux does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reprobuild.oci.tar_writer import Record
from reprobuild.verify.links import folders, resolve

LINKS = {
    "lib": "usr/lib",
    "usr/lib/here": ".",
    "usr/up": "../../..",
    "app": "/usr/up/lib",
    "gone": "nowhere/x",
}
LOOP = {"a": "b", "b": "/a"}
FILES = {path: Record(path, "link", 0o777, to) for path, to in {**LINKS, **LOOP}.items()}


@pytest.mark.parametrize(
    "path",
    ["lib/libc.so.6", "app", "/app/here/here/x", "usr/up/lib", "gone", "./lib//.", "../../lib", "usr/lib"],
)
def test_it_is_what_the_kernel_finds(path: str, tmp_path: Path) -> None:
    (tmp_path / "usr/lib").mkdir(parents=True)
    for name, to in LINKS.items():
        # As in a root of its own, which a test without privileges cannot enter.
        top = os.path.relpath(tmp_path, (tmp_path / name).parent) if to.startswith("/") else ""
        place = {"usr/up": ".."}.get(name, f"{top}{to}")
        (tmp_path / name).symlink_to(place)
    inside = (tmp_path / path.replace("../", "").lstrip("/")).resolve()
    assert resolve(path, FILES) == ("" if inside == tmp_path else str(inside.relative_to(tmp_path)))


def test_a_loop_or_a_path_that_is_too_long_leads_nowhere() -> None:
    assert resolve("a/x", FILES) is None
    assert resolve("/".join(["x"] * 5000), FILES) is None


def test_folders_of_a_variable() -> None:
    assert folders("/usr/lib:/lib::here:/a", "/lib", FILES) == ["usr/lib"]
    assert folders("", "/lib", FILES) == []
