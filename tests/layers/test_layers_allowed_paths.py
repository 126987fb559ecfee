"""Paths that a package may and may not put into an image."""

from __future__ import annotations

import pytest

from reprobuild.errors import BuildError
from reprobuild.layers.allowed_paths import is_plain, refuse_own_names


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


def test_reprobuild_s_own_names_are_refused() -> None:
    refuse_own_names(["opt/venv/lib/python3.11/site-packages/a.py"], "a 1.0")
    with pytest.raises(BuildError, match=r"^a 1\.0: has the file '/opt/reprobuild/selftest\.py'"):
        refuse_own_names(["opt/venv/a", "opt/reprobuild/selftest.py"], "a 1.0")
