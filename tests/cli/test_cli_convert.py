"""The command ``convert``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conftest import GOLDEN
from reprobuild.lock.exports import Form, export
from support.locks import LOCK

if TYPE_CHECKING:
    from support.commands import Call

pytest_plugins = ["support.commands", "support.family"]


@pytest.mark.parametrize("form", ["requirements", "explicit", "cyclonedx"])
def test_it_goes_to_standard_output_too(form: Form, call: Call) -> None:
    said = call("convert", str(GOLDEN / "pylock.torch-cu121.toml"), "--to", form)
    assert (said.status, said.out) == (0, export(LOCK, form))
    if form == "cyclonedx":
        count = len(LOCK.python) + len(LOCK.debian)
        assert f"no licenses and dependencies of {count} packages" in said.err
        assert "`reprobuild image` fetches them" in said.err
    else:
        assert said.err == ""
