"""Threads end soon when what they work for has failed or is interrupted."""

from __future__ import annotations

import contextvars
import threading
import time
from concurrent.futures import Future

import pytest

from reprobuild.host import process
from reprobuild.host.workers import WorkEndedError, check_wanted, end_with, while_wanted, workers


def until_unwanted(started: threading.Event) -> None:
    started.set()
    while True:
        check_wanted()
        time.sleep(0.001)


def test_a_program_and_a_loop_end_with_the_block() -> None:
    """Both are in threads, which no signal interrupts."""
    begun = threading.Event(), threading.Event()

    def run() -> None:
        begun[0].set()
        process.run(["sleep", "600"])

    futures: list[Future[None]] = []

    def interrupted() -> None:
        with workers(2) as pool:
            futures.extend(map(pool.submit, (run, lambda: until_unwanted(begun[1]), lambda: None)))
            for event in begun:
                event.wait()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert isinstance(futures[0].exception(), process.LimitReached)
    assert isinstance(futures[1].exception(), WorkEndedError)
    assert futures[2].cancelled()


def test_threads_of_a_thread_end_with_it_and_do_not_end_it() -> None:
    outer, started = threading.Event(), threading.Event()

    def work() -> None:
        with pytest.raises(ValueError, match="caught"), workers(1):
            raise ValueError("caught")
        assert not outer.is_set()
        with workers(1) as pool:
            pool.submit(until_unwanted, started).result()

    with workers(1, stop=outer) as pool:
        future = pool.submit(work)
        started.wait()
        outer.set()
        assert isinstance(future.exception(), WorkEndedError)


def test_without_an_end_all_work_is_wanted() -> None:
    check_wanted()
    event = threading.Event()

    def work() -> None:
        end_with(event)
        check_wanted()

    with workers(1) as pool:
        pool.submit(work).result()


def test_progress_ends_work_that_nobody_waits_for() -> None:
    event, noted = threading.Event(), list[int]()
    advance = while_wanted(noted.append)

    def copying() -> None:
        end_with(event)
        advance(1)
        event.set()
        advance(2)

    with pytest.raises(WorkEndedError):
        contextvars.copy_context().run(copying)
    assert noted == [1]
