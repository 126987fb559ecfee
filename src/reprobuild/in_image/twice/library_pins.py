"""Experiments with libraries: threads of DuckDB and gensim, databases' clocks, Numba's generators, asyncio's
tasks.
"""

from __future__ import annotations

import functools
import re
import sys
import weakref
from time import process_time
from types import FrameType
from typing import Any

from .places import is_users
from .queries import call_from

_spent = getattr(process_time, "__wrapped__", process_time)
_MOMENTS, _IDLE = 1.0, 3
"""Seconds that a task waits at a time, and how often it does so while the process does nothing."""
_THREADS = re.compile(
    r"\b(?:SET|PRAGMA)\s+(?:GLOBAL\s+|SESSION\s+)?(?:worker_)?threads\s*(?:=|TO)\s*\d+", re.IGNORECASE
)
_ONE = "SET threads = 1"
_CLOCK = re.compile(r"\b(?:now|get_current_timestamp)\s*\(\s*\)|\bCURRENT_TIMESTAMP\b", re.IGNORECASE)
_MOMENT = "2030-01-01 00:00:00"
_TIMES = ("date", "time", "datetime", "julianday", "unixepoch", "strftime")
"""Functions of SQLite that know the present by the word now, or where they are given nothing."""
_PRESENT = {"current_timestamp": _MOMENT, "current_date": _MOMENT[:10], "current_time": _MOMENT[11:]}


def one_thread_of_duckdb(module: Any) -> None:
    """Let DuckDB compute in one thread, which gives rows in the same order each time."""
    connect = module.connect

    @functools.wraps(connect)
    def connected(*arguments: Any, **named: Any) -> Any:
        connection = connect(*arguments, **named)
        connection.execute(_ONE).fetchall()  # else it could not register a table
        return connection

    module.connect = connected
    _rewrite(module, _THREADS, _ONE)
    module.execute(_ONE)


def stop_clock_of_duckdb(module: Any) -> None:
    """Let DuckDB's queries have a fixed time."""
    _rewrite(module, _CLOCK, f"TIMESTAMPTZ '{_MOMENT}+00'")


def _rewrite(module: Any, pattern: re.Pattern[str], by: str) -> None:
    """Let a part of each statement for DuckDB be another one."""
    for owner in (module, module.DuckDBPyConnection):
        for name in ("execute", "sql", "query"):
            inner = getattr(owner, name)
            setattr(owner, name, _rewritten(inner, int(owner is not module), pattern, by))


def _rewritten(inner: Any, at: int, pattern: re.Pattern[str], by: str) -> Any:
    @functools.wraps(inner)
    def wrapper(*arguments: Any, **named: Any) -> Any:
        given = list(arguments)
        if len(given) > at and isinstance(given[at], str):
            given[at] = pattern.sub(by, given[at])
        return call_from(sys._getframe(1), inner, given, named)

    return wrapper


def stop_clock_of_sqlite(module: Any) -> None:
    """Let SQLite's functions of time have a fixed one for the present."""
    connect = module.connect
    plain = connect(":memory:", check_same_thread=False)

    def fixed(name: str, *given: Any) -> Any:
        least = 2 if name == "strftime" else 1
        values = [_MOMENT if str(each).lower() == "now" else each for each in given]
        values += [_MOMENT] * (least - len(values))
        marks = ", ".join("?" * len(values))
        return plain.execute(f"SELECT {name}({marks})", values).fetchone()[0]

    @functools.wraps(connect)
    def connected(*arguments: Any, **named: Any) -> Any:
        connection = connect(*arguments, **named)
        for name in _TIMES:
            connection.create_function(name, -1, functools.partial(fixed, name))
        for name, value in _PRESENT.items():
            connection.create_function(name, 0, functools.partial(str, value))
        return connection

    module.connect = module.dbapi2.connect = connected


def seed_numba(module: Any) -> None:
    """Seed the generators that compiled code draws from: it has its own, by NumPy's and Python's names."""
    numpy, random = sys.modules["numpy"], sys.modules["random"]

    def seed(value: int) -> None:
        numpy.random.seed(value)
        random.seed(value)

    # With NUMBA_DISABLE_JIT these are the program's own, which stay as they are.
    states = numpy.random.get_state(), random.getstate()
    module.njit(seed)(0)
    numpy.random.set_state(states[0])
    random.setstate(states[1])


def one_worker_of_gensim(module: Any) -> None:
    """Let gensim train each model in one thread."""
    made = module.Word2Vec.__init__  # which those of paragraphs and of parts of words call, too

    @functools.wraps(made)
    def init(self: Any, *arguments: Any, **named: Any) -> None:
        made(self, *arguments, **{**named, "workers": 1})

    module.Word2Vec.__init__ = init


def shuffle_by_tasks_of_dask(module: Any) -> None:
    """Let dask move rows between partitions by tasks, which put them together in order."""
    module.set({"dataframe.shuffle.method": "tasks", "shuffle": "tasks"})


def one_writer_of_arrow(module: Any) -> None:
    """Let Arrow write the rows of a dataset in one thread."""
    inner = module.write_dataset

    @functools.wraps(inner)
    def write_dataset(*arguments: Any, **named: Any) -> Any:
        return inner(*arguments, **{**named, "use_threads": False})

    module.write_dataset = write_dataset


def one_task_of_asyncio(module: Any) -> None:
    """Let the tasks that one makes run one after the other, in the order in which they were made.

    Those that one of these makes run beside it, since it may wait for them, but for the only one, as the one
    that `asyncio.wait_for` makes of a whole program; so do those that a library makes, as a server does for a
    request. One that waits while the process does nothing goes on after a while.
    """
    asyncio = sys.modules["asyncio"]
    inner = module.BaseEventLoop.create_task
    made: weakref.WeakKeyDictionary[Any, tuple[int, Any]] = weakref.WeakKeyDictionary()
    makers: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    async def in_turn(loop: Any, before: Any, coroutine: Any) -> Any:
        idle = 0
        while before is not None and not before.done() and idle < _IDLE:
            waiter, spent = loop.create_future(), _spent()
            for call in (before.add_done_callback, functools.partial(loop.call_later, _MOMENTS)):
                call(lambda *_, waiter=waiter: waiter.done() or waiter.set_result(None))
            await waiter
            idle = idle + 1 if _spent() - spent < _MOMENTS / 20 else 0
        return await coroutine

    def is_beside(maker: Any) -> bool:
        above = makers.get(maker)
        return above is not None and (above in makers or made[above][0] > 1)

    @functools.wraps(inner)
    def create_task(self: Any, coroutine: Any, **named: Any) -> Any:
        maker = asyncio.current_task(self) if self.is_running() else None
        if maker is None or is_beside(maker) or not _is_asked_by_program():
            return inner(self, coroutine, **named)
        count, last = made.get(maker, (0, None))
        task = inner(self, in_turn(self, last, coroutine), **named)
        made[maker] = count + 1, task
        makers[task] = maker
        return task

    module.BaseEventLoop.create_task = create_task


def _is_asked_by_program() -> bool:
    """Return whether a line of the program led to a call, through asyncio alone."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("asyncio"):
        frame = frame.f_back
    return frame is not None and is_users(frame.f_code.co_filename)
