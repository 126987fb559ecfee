"""Threads end soon when what they work for has failed or is interrupted."""

from __future__ import annotations

import contextvars
import hashlib
import os
import threading
import time
from concurrent.futures import Future
from pathlib import Path

import pytest

from reprobuild.host import process
from reprobuild.host.verified import is_unchanged
from reprobuild.host.workers import WorkEndedError, check_wanted, end_with, sha256_of, while_wanted, workers


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


def test_a_file_is_hashed_whole_and_not_further_than_it_is_wanted(tmp_path: Path) -> None:
    """Ctrl-C waited for the largest library of an image."""
    file = tmp_path / "library.so"
    file.write_bytes(os.urandom(3 << 18) + b"x")
    with file.open("rb", buffering=0) as opened:
        assert sha256_of(opened) == hashlib.sha256(file.read_bytes()).hexdigest()

    def cancelled() -> None:
        end_with(event)
        event.set()
        with file.open("rb", buffering=0) as opened:
            with pytest.raises(WorkEndedError):
                sha256_of(opened)
            assert opened.tell() < file.stat().st_size
        with pytest.raises(WorkEndedError):
            is_unchanged(file, "0" * 64)

    event = threading.Event()
    contextvars.copy_context().run(cancelled)
