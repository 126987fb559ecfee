"""Ranks of a process group."""

from __future__ import annotations

import multiprocessing
import signal
from types import SimpleNamespace

import pytest

import reprobuild.in_image.selftest.command_line  # noqa: F401 -- the checks are registered
from reprobuild.in_image.selftest import ranks
from reprobuild.in_image.selftest.outcomes import NOTES


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


def test_sums_by_nccl_are_made_with_nvls_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def sums(backend: str, start: str, world: int, nvls: str) -> dict[str, str]:
        seen.append((backend, start, world, nvls))
        return {"1 KB": nvls}

    monkeypatch.setattr(ranks, "torch", SimpleNamespace(cuda=SimpleNamespace(device_count=lambda: 9)))
    monkeypatch.setattr(ranks, "sums_over", sums)
    NOTES.clear()
    assert ranks.sums_nccl("cuda") == {"1 KB": "0", "1 KB with NVLS": "1"}
    assert seen == [("nccl", "spawn", 8, "0"), ("nccl", "spawn", 8, "1")]
    assert NOTES == ["8 ranks; NVLS changes the bits of: 1 KB"]
