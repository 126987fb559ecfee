"""Records, for a trace, in which order a program gets what others finish.

Of tasks that end and of what queues give, the order counts: the outside takes it for a candidate if both runs
got the same things in another order.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import sys
import threading
import weakref
from typing import Any

from .places import here, is_users
from .watching import Watcher

MOST_ITEMS = 6
WAIT = "concurrent.futures.wait"
ASYNCIO_WAIT = "asyncio.wait"
CONNECTION_WAIT = "multiprocessing.connection.wait"
BY_WORKER = " by a worker"
"""Which of several gets something is another matter than what comes first."""


def _shown(value: Any, depth: int = 2) -> str:
    """Return a short text of a value, the same in each run where it is the same; of objects their type."""
    if value is None or type(value) in (int, float, bool, str, bytes):
        return repr(value)[:40]
    if type(value) in (tuple, list) and depth:
        return f"({', '.join(_shown(each, depth - 1) for each in value[:MOST_ITEMS])})"
    if type(value) is dict and depth:
        held = [f"{_shown(key, 0)}: {_shown(value[key], depth - 1)}" for key in [*value][:MOST_ITEMS]]
        return f"{{{', '.join(held)}}}"
    return type(value).__name__


def _called_by_program() -> bool:
    return is_users(sys._getframe(2).f_code.co_filename)


def install(watcher: Watcher, sources: Any) -> None:
    """Watch what is imported later."""
    watcher.after("concurrent.futures", functools.partial(_futures, sources))
    if sys.version_info < (3, 13):  # from then on it gives what `async for` goes through, too
        watcher.after("asyncio", functools.partial(_asyncio, sources))
    watcher.after("asyncio", functools.partial(_tasks, sources))
    watcher.after("multiprocessing.pool", functools.partial(_pools, sources))
    watcher.after("multiprocessing.connection", functools.partial(_connections, sources))
    watcher.after("multiprocessing.queues", functools.partial(_queues, sources, ("Queue", "SimpleQueue")))
    watcher.after("queue", functools.partial(_queues, sources, ("Queue",)))
    watcher.after("sqlite3", functools.partial(_databases, sources))


def _futures(sources: Any, module: Any) -> None:
    inner = module.as_completed

    @functools.wraps(inner)
    def as_completed(fs: Any, *arguments: Any, **keywords: Any) -> Any:
        given = list(fs)
        numbers = {id(future): number for number, future in enumerate(given)}
        found = sources.call_of("order", "as_completed", inner, (given, *arguments), keywords)
        return told(found, numbers, here(2, imports=False))

    def told(found: Any, numbers: dict[int, int], place: Any) -> Any:
        for future in found:
            sources.note("order", "as_completed", numbers.get(id(future)), place)
            yield future

    module.as_completed = as_completed
    module._base.as_completed = as_completed
    _waits_for_some(sources, module)


# Without an argument: images with Python 3.8 run this, too, and have no ``set[Any]``.
class InTurn(set):  # type: ignore[type-arg]
    """Futures that are gone through in the order in which they were made, not by their addresses."""

    def __iter__(self) -> Any:
        """Return them in turn."""
        return iter(sorted(super().__iter__(), key=number_of))


def number_of(future: Any) -> int:
    """Return which of its process's futures it is; -1 for one that was made before they were counted."""
    return int(_numbers.get(future, getattr(future, "_reprobuild_number", -1)))


def _waits_for_some(sources: Any, module: Any) -> None:
    """Watch what `wait` gives: sets of futures, which have no order."""
    make, inner, count = module.Future.__init__, module.wait, itertools.count()

    @functools.wraps(make)
    def made(self: Any, *given: Any, **named: Any) -> None:
        make(self, *given, **named)
        self._reprobuild_number = next(count)

    @functools.wraps(inner)
    def wait(fs: Any, *arguments: Any, **keywords: Any) -> Any:
        found = sources.call_of("order", WAIT, inner, (fs, *arguments), keywords)
        if _called_by_program():
            for future in found.done:
                sources.note("order", WAIT, number_of(future))
        return found

    module.Future.__init__ = made
    module.wait = module._base.wait = wait


def _asyncio(sources: Any, module: Any) -> None:
    inner = module.as_completed

    @functools.wraps(inner)
    def as_completed(fs: Any, *arguments: Any, **keywords: Any) -> Any:
        ended: list[int] = []
        place = here(2, imports=False)
        given = [module.ensure_future(each) for each in fs]
        for number, future in enumerate(given):
            future.add_done_callback(functools.partial(lambda at, _: ended.append(at), number))

        async def told(waiting: Any, turn: int) -> Any:
            result = await waiting
            sources.note("order", "asyncio.as_completed", ended[turn] if turn < len(ended) else -1, place)
            return result

        found = sources.call_of("order", "asyncio.as_completed", inner, (given, *arguments), keywords)
        return [told(waiting, turn) for turn, waiting in enumerate(found)]

    module.as_completed = as_completed
    module.tasks.as_completed = as_completed


def _tasks(sources: Any, module: Any) -> None:
    """Watch what asyncio's `wait` gives: sets of tasks, of which some may have ended before others."""
    make, inner, count = module.BaseEventLoop.create_task, module.wait, itertools.count()

    @functools.wraps(make)
    def create_task(self: Any, *given: Any, **named: Any) -> Any:
        task = make(self, *given, **named)
        # Not those of a server in the same process, which come in between at any time.
        if any(is_users(each.f_code.co_filename) for each in _above(3)):
            _numbers[task] = next(count)
        return task

    @functools.wraps(inner)
    def wait(fs: Any, *arguments: Any, **keywords: Any) -> Any:
        waiting = sources.call_of("order", ASYNCIO_WAIT, inner, (fs, *arguments), keywords)
        return told(waiting, here(2, imports=False)) if _called_by_program() else waiting

    async def told(waiting: Any, place: Any) -> Any:
        found = await waiting
        for task in found[0]:
            sources.note("order", ASYNCIO_WAIT, _numbers.get(task, -1), place)
        return found

    module.BaseEventLoop.create_task = create_task
    module.wait = module.tasks.wait = wait


def _above(most: int) -> Any:
    """Yield the frames of those who called the caller."""
    frame: Any = sys._getframe(2)
    while frame is not None and most:
        yield frame
        frame, most = frame.f_back, most - 1


_numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
"""Which of its process's tasks each is."""


async def first_made(inner: Any, tasks: Any, **named: Any) -> Any:
    """Wait for the task that was made first, whichever ends first; where for all, give them in that order."""
    waiting = sorted(tasks, key=lambda task: _numbers.get(task, -1))
    if named.pop("return_when", "ALL_COMPLETED") == "ALL_COMPLETED":
        done, pending = await inner(waiting, **named)
        return InTurn(done), pending
    done, _ = await inner(waiting[:1])
    return done, set(waiting[1:])


class _Told:
    """An iterator that records what it gives, at the line that made it."""

    def __init__(self, sources: Any, inner: Any, name: str, place: Any) -> None:
        self._sources, self._inner, self._name, self._place = sources, inner, name, place

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        result = next(self._inner)
        self._sources.note("order", self._name, _shown(result), self._place)
        return result

    def next(self, timeout: Any = None) -> Any:
        result = self._inner.next(timeout)
        self._sources.note("order", self._name, _shown(result), self._place)
        return result


def _pools(sources: Any, module: Any) -> None:
    inner = module.Pool.imap_unordered

    @functools.wraps(inner)
    def imap_unordered(self: Any, *arguments: Any, **keywords: Any) -> Any:
        found = sources.call_of("order", "imap_unordered", inner, (self, *arguments), keywords)
        return _Told(sources, iter(found), "imap_unordered", here(2, imports=False))

    module.Pool.imap_unordered = imap_unordered


def _connections(sources: Any, module: Any) -> None:
    """Watch which of several connections has something first."""
    inner = module.wait

    @functools.wraps(inner)
    def wait(object_list: Any, timeout: Any = None) -> Any:
        if not _called_by_program():  # also multiprocessing waits so
            return inner(object_list, timeout)
        given = list(object_list)
        found = sources.call_of("order", CONNECTION_WAIT, inner, (given, timeout), {})
        numbers = {id(each): number for number, each in enumerate(given)}
        for each in found:
            sources.note("order", CONNECTION_WAIT, numbers.get(id(each), -1))
        return found

    module.wait = wait


_turns = itertools.count()
_PATIENCE = 10.0
"""Seconds that one connection is waited for alone: it may have nothing before another one is served."""


def one_in_turn(inner: Any, connections: Any, timeout: Any) -> Any:
    """Wait for one connection after the other, whichever has something first."""
    one = connections[next(_turns) % len(connections) :][:1] if connections else []
    return (inner(one, _PATIENCE) if one else None) or inner(connections, timeout)


def _queues(sources: Any, names: Any, module: Any) -> None:
    for name in names:
        kind = getattr(module, name)
        if isinstance(kind, type):
            setattr(kind, "get", _got(sources, vars(kind)["get"], f"{name}.get"))  # noqa: B010 -- its type


def _got(sources: Any, inner: Any, name: str) -> Any:
    @functools.wraps(inner)
    def get(self: Any, *arguments: Any, **keywords: Any) -> Any:
        try:
            result = inner(self, *arguments, **keywords)
        except Exception as error:
            if _waits(arguments, keywords) and _called_by_program():
                sources.note("timeout", name, type(error).__name__)
            raise
        if _called_by_program():
            sources.note("order", name if _is_main() else f"{name}{BY_WORKER}", _shown(result))
            if _waits(arguments, keywords):
                sources.note("timeout", name, "something came in time")
        return result

    return get


def _is_main() -> bool:
    """Return whether this is the main thread of a process that multiprocessing did not start."""
    processes = sys.modules.get("multiprocessing.process")
    started = processes is not None and processes.parent_process() is not None
    return threading.current_thread() is threading.main_thread() and not started


def _waits(arguments: Any, keywords: Any) -> bool:
    """Whether a queue's ``get(block, timeout)`` waits for some time only."""
    return (arguments[1] if len(arguments) > 1 else keywords.get("timeout")) is not None


def _databases(sources: Any, module: Any) -> None:
    """Let SQLite draw from here, with a record at the line that asks for rows."""
    inner = module.connect

    def drawn() -> int:
        value = int.from_bytes(os.urandom(8), "big", signed=True)
        return int(sources.note("entropy", "SQLite's random()", value))

    def blob(size: Any) -> bytes:
        value = int.from_bytes(os.urandom(8), "big")
        value = int(sources.note("entropy", "SQLite's randomblob()", value))
        return hashlib.shake_128(value.to_bytes(8, "big")).digest(max(1, int(size or 0)))

    @functools.wraps(inner)
    def connect(*arguments: Any, **keywords: Any) -> Any:
        found = inner(*arguments, **keywords)
        found.create_function("random", 0, drawn)
        found.create_function("randomblob", 1, blob)
        return found

    module.connect = module.dbapi2.connect = connect
