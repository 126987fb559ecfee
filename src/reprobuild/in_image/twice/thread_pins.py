"""Experiments with threads, processes and tasks: one at a time, in the order in which they were made."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable
from functools import partial
from time import process_time, sleep
from typing import Any

from .library_pins import one_task_of_asyncio
from .places import is_users
from .watching import Watcher

_ALONE = 0.5
"""Seconds that a new thread or process works alone, and then again as long as it is busy."""
_BUSY = 20
"""The most times that it may do so."""
_IDLE = 40
"""Moments of a tenth of that in which the process does nothing, after which a thread waits no more."""
_MOST_PROGRAMS = 64
"""Of those that a process starts: the first ones alone."""
_LOOKS = 25
"""Times that it is asked in a moment whether one has ended."""
_starting: list[Any] = []
"""Those that work alone now, while others have nothing to do."""
_spent = getattr(process_time, "__wrapped__", process_time)


def install(watcher: Watcher) -> None:
    """Let one of them work at a time."""
    watcher.after("concurrent.futures", _single(("ThreadPoolExecutor", "ProcessPoolExecutor"), "max_workers"))
    watcher.after("multiprocessing.pool", _single(("Pool", "ThreadPool"), "processes"))
    watcher.after("joblib.parallel", _single(("Parallel",), "n_jobs"))
    watcher.after("threading", _in_turn)
    watcher.after(
        "threading", lambda m: _one_by_one(m.Thread, lambda t: f"/proc/self/task/{t._native_id}/stat")
    )
    watcher.after(
        "multiprocessing.process", lambda m: _one_by_one(m.BaseProcess, lambda p: f"/proc/{p.pid}/stat")
    )
    watcher.after("subprocess", _programs_one_by_one)
    watcher.after("asyncio.base_events", one_task_of_asyncio)
    watcher.after("torch", lambda torch: torch.set_num_threads(1))


def _single(names: tuple[str, ...], count: str) -> Callable[[Any], None]:
    """Return what lets each of a module's pools have one worker; ``count`` is how the argument is called."""

    def change(module: Any) -> None:
        for name in names:
            kind = getattr(module, name)
            made = kind.__init__

            def init(self: Any, _: Any = None, *arguments: Any, _made: Any = made, **named: Any) -> None:
                named.pop(count, None)
                _made(self, 1, *arguments, **named)

            kind.__init__ = init

    return change


def _one_by_one(kind: Any, stat: Callable[[Any], str]) -> None:
    """Let a thread or process work alone for a while, for most until its end: the next one begins after it.

    ``stat`` gives the file that says how much it has worked.
    """
    started = kind.start

    @functools.wraps(started)
    def start(self: Any) -> None:
        started(self)
        if getattr(getattr(self, "_target", None), "__module__", "") == "multiprocessing.pool":
            return  # what a pool of one worker consists of: it works while the program waits
        _starting.append(self)
        _let_work(lambda seconds: self.join(seconds) or not self.is_alive(), stat(self))
        _starting.remove(self)

    kind.start = start


def _let_work(has_ended: Callable[[float], bool], stat: str) -> None:
    """Wait until what was started has ended, or has nothing to do; but no longer than so many moments."""
    worked, left = -1, _BUSY
    while not has_ended(_ALONE) and left and (now := _worked(stat)) != worked:
        worked, left = now, left - 1


def _programs_one_by_one(module: Any) -> None:
    """Let a program that is started work alone at first, as a worker until it waits for its task."""
    made, numbers = module.Popen.__init__, itertools.count()

    @functools.wraps(made)
    def init(self: Any, *arguments: Any, **named: Any) -> None:
        made(self, *arguments, **named)

        if next(numbers) < _MOST_PROGRAMS:
            _let_work(partial(_program_has_ended, self.pid), f"/proc/{self.pid}/stat")

    module.Popen.__init__ = init


def _program_has_ended(number: int, seconds: float) -> bool:
    """Return whether a process ends in so many seconds; who waits for it gets its status still."""
    for _ in range(_LOOKS):
        try:
            if os.waitid(os.P_PID, number, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                return True
        except ChildProcessError:  # somebody has waited for it
            return True
        sleep(seconds / _LOOKS)
    return False


def _in_turn(module: Any) -> None:
    """Let a thread work after those that were started before it with the same function of the program, as
    long as anything goes on: of several workers that share their tasks the first one then does them all.
    """
    started = module.Thread.start
    before: dict[Any, list[Any]] = {}

    @functools.wraps(started)
    def start(self: Any) -> None:
        target = getattr(self, "_target", None) or type(self).run
        code = getattr(getattr(target, "__func__", target), "__code__", None)
        if code is not None and is_users(code.co_filename):
            run, others = self.run, list(before.setdefault(code, []))
            before[code].append(self)

            def in_turn() -> None:
                _wait_for(others)
                run()

            self.run = in_turn
        started(self)

    module.Thread.start = start


def _wait_for(threads: list[Any]) -> None:
    """Wait until threads have ended, or the process has done nothing for a while, and starts no other one."""
    idle = 0
    while idle < _IDLE and (working := [each for each in threads if each.is_alive()]):
        spent = _spent()
        working[0].join(_ALONE / 10)
        idle = idle + 1 if not _starting and _spent() - spent < _ALONE / 100 else 0


def _worked(stat: str) -> int:
    """Return the processor time that a thread or process has had, by its file in /proc (proc(5))."""
    try:
        with open(stat, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 -- pathlib is slow to import
            fields = file.read().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    except (OSError, ValueError, IndexError):
        return -1
