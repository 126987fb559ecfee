"""``completion``: a script for each shell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.commands import Call


pytest_plugins = ["support.commands"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_written_for_each_shell(shell: str, call: Call) -> None:
    said = call("completion", shell)
    assert (said.status, said.err) == (0, "")
    assert "_REPROBUILD_COMPLETE" in said.out
