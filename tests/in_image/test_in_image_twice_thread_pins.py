"""One thread, process or task works at a time."""

from __future__ import annotations

import asyncio
import os
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from reprobuild.in_image.twice import thread_pins
from support.twice import recorded


def test_threads_work_one_after_the_other(tmp_path: Path) -> None:
    program = tmp_path / "threads.py"
    program.write_text(
        "import threading, time\n"
        "def work(n):\n"
        "    time.sleep(0.02 * (3 - n))\n"
        "    print(n)\n"
        "threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]\n"
        "[each.start() for each in threads]\n"
    )
    (tmp_path / "run").mkdir()
    settings = {"REPROBUILD_TWICE_EVERY": "1", "REPROBUILD_TWICE_PIN": "threads\t0\t"}
    ran = recorded(sys.executable, [str(program)])(tmp_path / "run", settings, 30)
    assert (ran.stdout, ran.stderr) == (b"0\n1\n2\n", b"")


def test_a_thread_that_is_busy_works_alone() -> None:
    class Worker(threading.Thread):
        """Computes for longer than a thread is waited for at first."""

        def run(self) -> None:
            end = time.thread_time() + 3 * thread_pins._ALONE
            while time.thread_time() < end:
                pass
            done.append(self.name)

    done: list[str] = []
    thread_pins._one_by_one(Worker, lambda thread: f"/proc/self/task/{thread.native_id}/stat")
    Worker(name="first", daemon=True).start()
    assert done == ["first"]


def test_the_threads_of_a_pool_are_started_without_a_wait() -> None:
    """It has one worker, and a program may make a pool for each of its items."""
    waited = list[float | None]()

    class Thread(threading.Thread):
        def join(self, timeout: float | None = None) -> None:
            waited.append(timeout)
            super().join(timeout)

    thread_pins._one_by_one(Thread, lambda thread: f"/proc/self/task/{thread.native_id}/stat")
    end = threading.Event()

    def work() -> None:
        end.wait(9)

    work.__module__ = "multiprocessing.pool"
    Thread(target=work).start()
    assert waited == []
    end.set()
    work.__module__ = "train"
    Thread(target=work).start()
    assert waited != []


def test_of_threads_with_one_function_the_first_does_what_they_share() -> None:
    class Thread(threading.Thread):
        pass

    thread_pins._in_turn(SimpleNamespace(Thread=Thread))
    jobs, took = list(range(6)), list[str]()

    def work() -> None:
        while jobs:
            jobs.pop()
            took.append(threading.current_thread().name)
            time.sleep(0.01)

    threads = [Thread(target=work, name=name) for name in "abc"]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert took == ["a"] * 6


def test_threads_that_wait_for_each_other_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    class Thread(threading.Thread):
        pass

    monkeypatch.setattr(thread_pins, "_IDLE", 2)
    thread_pins._in_turn(SimpleNamespace(Thread=Thread))
    barrier = threading.Barrier(2, timeout=60)

    def work() -> None:
        barrier.wait()

    threads = [Thread(target=work) for _ in "ab"]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not barrier.broken


def test_workers_that_wait_while_others_are_started_do_not_count_as_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each works alone for a while, with many longer than a thread waits for the one before it."""

    class Thread(threading.Thread):
        pass

    monkeypatch.setattr(thread_pins, "_ALONE", 0.2)
    monkeypatch.setattr(thread_pins, "_IDLE", 30)
    thread_pins._in_turn(SimpleNamespace(Thread=Thread))
    thread_pins._one_by_one(Thread, lambda thread: f"/proc/self/task/{thread.native_id}/stat")
    jobs, took = queue.Queue[int | None](), list[str]()

    def work() -> None:
        while jobs.get() is not None:
            took.append(threading.current_thread().name)

    threads = [Thread(target=work, name=f"{number}") for number in range(5)]
    for each in threads:
        each.start()
    for number in range(6):
        jobs.put(number)
    for _ in threads:
        jobs.put(None)
    for each in threads:
        each.join()
    assert took == ["0"] * 6
    assert not thread_pins._starting


def test_programs_work_alone_until_they_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one takes longer until it says that it is there."""
    monkeypatch.setattr(thread_pins, "_ALONE", 1.5)  # in which it gets some time on a loaded machine, too
    wait = "import sys; print({}, flush=True); sys.stdin.read()"
    begins = "x = sum(range(10 ** 7)); "

    class Popen(subprocess.Popen[str]):
        pass

    thread_pins._programs_one_by_one(SimpleNamespace(Popen=Popen))
    read, write = os.pipe()
    started = [
        Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=write)
        for text in (begins + wait.format(1), wait.format(2), "print(3)")
    ]
    os.close(write)
    assert [each.poll() for each in started] == [None, None, 0]
    for each in started:
        each.communicate()
    with os.fdopen(read) as said:
        assert said.read().split() == ["1", "2", "3"]


def test_who_waits_for_a_program_gets_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess.Popen, "__init__", subprocess.Popen.__init__)
    thread_pins._programs_one_by_one(subprocess)

    async def status() -> int | None:
        started = await asyncio.create_subprocess_exec(sys.executable, "-c", "raise SystemExit(3)")
        return await started.wait()

    assert asyncio.run(status()) == 3
    assert subprocess.run([sys.executable, "-c", "raise SystemExit(4)"], check=False).returncode == 4
