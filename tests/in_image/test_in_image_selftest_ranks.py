"""Ranks of a process group."""

from __future__ import annotations

import multiprocessing
from types import SimpleNamespace

import pytest

import reprobuild.in_image.selftest.command_line  # noqa: F401 -- the checks are registered
from reprobuild.in_image.selftest import ranks


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (None, "no answer within 90 s"),
        (3, "it ended with status 3 before it had answered"),
        (-11, "it ended by SIGSEGV before it had answered"),
    ],
)
def test_a_rank_that_takes_too_long_is_told_from_one_that_died(status: int | None, reason: str) -> None:
    receiving, _sending = multiprocessing.Pipe(duplex=False)
    process = SimpleNamespace(exitcode=status, join=lambda _: None)
    with pytest.raises(RuntimeError, match=f"^rank 1: {reason}$"):
        ranks.answer_of(1, receiving, process)
