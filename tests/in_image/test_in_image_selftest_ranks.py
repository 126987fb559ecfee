"""Ranks of a process group."""

from __future__ import annotations

import multiprocessing
import signal
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


def one_fails(rank: int, _world: int, _place: str) -> None:
    if rank == 1:
        raise ValueError("the cause")
    signal.pause()  # as a rank that waits for the other


def test_the_rank_that_failed_is_named_and_not_the_one_that_waits_for_it() -> None:
    with pytest.raises(RuntimeError, match=r"^rank 1: (?s:.*)ValueError: the cause"):
        ranks.launched(one_fails, "fork", 2)


def test_answers_are_in_the_order_of_the_ranks() -> None:
    assert ranks.launched(lambda rank, *_: {"rank": rank}, "fork", 3) == [{"rank": n} for n in range(3)]
