"""Paths that a file of a package may have."""

from __future__ import annotations

import pytest

from reprobuild.fetch.plain_path import is_plain


@pytest.mark.parametrize("path", ["a", "a/b.py", "opt/ü/x y", "a" * 255, "/".join(["a" * 255] * 16)])
def test_a_path_of_plain_text_that_leads_down(path: str) -> None:
    assert is_plain(path)


@pytest.mark.parametrize(
    "path",
    ["", "/a", "a/", "a//b", "./a", "../a", "a/../b", "a\\b", "a\nb", "a\x7f", "a\u2028b", "a\udc80",
     "a" * 256, "/".join(["a" * 255] * 16) + "/b"],
)  # fmt: skip
def test_any_other_is_not(path: str) -> None:
    assert not is_plain(path)
