"""Names in an image that are reserved for reprobuild."""

from __future__ import annotations

import pytest

from reprobuild.errors import BuildError
from reprobuild.layers.allowed_paths import refuse_own_names


def test_reprobuild_s_own_names_are_refused() -> None:
    refuse_own_names(["opt/venv/lib/python3.11/site-packages/a.py"], "a 1.0")
    with pytest.raises(BuildError, match=r"^a 1\.0: has the file '/opt/reprobuild/selftest\.py'"):
        refuse_own_names(["opt/venv/a", "opt/reprobuild/selftest.py"], "a 1.0")
