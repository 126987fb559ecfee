"""The signal that ended a program, in words."""

from __future__ import annotations

import pytest

from reprobuild.host.os_reasons import killed_by


@pytest.mark.parametrize(
    ("status", "words"),
    [(-9, "it was killed (SIGKILL)"), (139, "it was killed (SIGSEGV)"), (1, ""), (255, "")],
)
def test_the_status_of_a_process_or_a_shell(status: int, words: str) -> None:
    assert killed_by(status) == words
