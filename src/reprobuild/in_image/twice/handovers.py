"""Follows, for a trace, which operations of other threads are over for the thread that goes on.

A thread that comes out of a queue, an event, a future or another object of that kind goes on after all that
was done before another went in; so what is read then does not race. Each thread knows the last operation of
every other that is over for it, and each such object knows what those knew that went in (Lamport, "Time,
Clocks, and the Ordering of Events", 1978). A plain lock is not followed: it does not say who comes first.
"""

from __future__ import annotations

import functools
import itertools
import os
import threading
import weakref
from typing import Any

from .watching import Watcher

_keys = itertools.count()
_lock = (
    threading.RLock()
)  # a queue may be put into while garbage is collected, so the same thread may come twice


class Clock:
    """Of an object: the last operation of each thread that is over for what comes out of it."""

    def __init__(self) -> None:
        self.over: dict[int, int] = {}


class _Thread(threading.local):
    """Of a thread: its key, and the last operation of each that is over for it."""

    def __init__(self) -> None:
        self.key = next(_keys)
        self.over: dict[int, int] = {}


_thread = _Thread()
_made_by: list[int] = []
"""The key of the thread of each operation."""
_clocks: weakref.WeakKeyDictionary[Any, Clock] = weakref.WeakKeyDictionary()
"""Of the locks of conditions: several conditions may share one."""


def made() -> None:
    """Note that this thread did the next operation."""
    _made_by.append(_thread.key)


def is_over(operation: int) -> bool:
    """Return whether another thread's operation was over when this thread was handed something."""
    if not 0 <= operation < len(_made_by) or _made_by[operation] == _thread.key:
        return False
    return _thread.over.get(_made_by[operation], -1) >= operation


def _merged(one: dict[int, int], other: dict[int, int]) -> dict[int, int]:
    return {**one, **{key: at for key, at in other.items() if at > one.get(key, -1)}}


def gives(clock: Clock) -> None:
    """Note that this thread puts something in."""
    with _lock:
        clock.over = _merged(clock.over, {**_thread.over, _thread.key: len(_made_by) - 1})


def takes(clock: Clock) -> None:
    """Note that this thread gets something out."""
    with _lock:
        _thread.over = _merged(_thread.over, clock.over)


def _forked() -> None:
    global _lock  # noqa: PLW0603 -- another thread may have held it
    _lock = threading.RLock()
    _thread.key, _thread.over = next(_keys), {}  # what objects know of before is of nobody in this process
    _made_by.clear()


def _of(holder: Any) -> Clock:
    """Return the clock of an object, which has one from now on."""
    found: Clock | None = holder.__dict__.get("_reprobuild_clock")
    if found is None:
        found = holder.__dict__.setdefault("_reprobuild_clock", Clock())
    return found


def _of_condition(condition: Any) -> Clock:
    try:
        with _lock:
            return _clocks.setdefault(condition._lock, Clock())
    except TypeError:  # a lock of the program's own that cannot be referred to
        return _of(condition)


def _around(owner: Any, name: str, clock_of: Any, *, before: bool, after: bool) -> None:
    """Let a method give before it does what it does, or take after that."""
    inner = getattr(owner, name)

    @functools.wraps(inner)
    def wrapper(self: Any, *arguments: Any, **keywords: Any) -> Any:
        if before:
            gives(clock_of(self))
        result = inner(self, *arguments, **keywords)
        if after:
            takes(clock_of(self))
        return result

    setattr(owner, name, wrapper)


def _conditions(module: Any) -> None:
    """Follow conditions, of which events, semaphores, barriers, queues and futures are made; and threads."""
    kind = module.Condition
    made_new = kind.__init__

    @functools.wraps(made_new)
    def init(self: Any, *arguments: Any, **keywords: Any) -> None:
        made_new(self, *arguments, **keywords)
        acquire, release, clock = self.acquire, self.release, _of_condition(self)

        def acquired(*given: Any, **named: Any) -> Any:
            result = acquire(*given, **named)
            if result:
                takes(clock)
            return result

        def released() -> None:
            gives(clock)
            release()

        self.acquire, self.release = acquired, released

    kind.__init__ = init
    _around(kind, "__enter__", _of_condition, before=False, after=True)
    _around(kind, "__exit__", _of_condition, before=True, after=False)
    _around(kind, "wait", _of_condition, before=True, after=True)
    _around(kind, "notify", _of_condition, before=True, after=False)
    is_set = module.Event.is_set

    @functools.wraps(is_set)
    def seen_set(self: Any) -> Any:
        result = is_set(self)
        if result:
            takes(_of_condition(self._cond))
        return result

    module.Event.is_set = seen_set
    _threads(module.Thread)


def _threads(kind: Any) -> None:
    _around(kind, "start", _of, before=True, after=False)
    works, alive, join = kind._bootstrap_inner, kind.is_alive, kind.join

    @functools.wraps(works)
    def bootstrap(self: Any) -> None:
        takes(_of(self))
        try:
            works(self)
        finally:
            gives(_of(self))

    @functools.wraps(alive)
    def is_alive(self: Any) -> Any:
        result = alive(self)
        if not result:
            takes(_of(self))
        return result

    @functools.wraps(join)
    def joined(self: Any, *arguments: Any, **keywords: Any) -> None:
        join(self, *arguments, **keywords)
        self.is_alive()

    kind._bootstrap_inner, kind.is_alive, kind.join = bootstrap, is_alive, joined


def _simple_queues(module: Any) -> None:
    """Follow the queue that is in C, by a class below its own."""
    kind = type("SimpleQueue", (module.SimpleQueue,), {"__module__": module.SimpleQueue.__module__})
    for name in ("put", "put_nowait"):
        _around(kind, name, _of, before=True, after=False)
    for name in ("get", "get_nowait"):
        _around(kind, name, _of, before=False, after=True)
    module.SimpleQueue = kind


def _loops(module: Any) -> None:
    """Follow what another thread lets a loop call."""
    inner = module.BaseEventLoop.call_soon_threadsafe

    @functools.wraps(inner)
    def call_soon_threadsafe(self: Any, callback: Any, *arguments: Any, **keywords: Any) -> Any:
        clock = Clock()
        gives(clock)

        @functools.wraps(callback)
        def called(*given: Any) -> Any:
            takes(clock)
            return callback(*given)

        return inner(self, called, *arguments, **keywords)

    module.BaseEventLoop.call_soon_threadsafe = call_soon_threadsafe


def install(watcher: Watcher) -> None:
    """Follow what is there, and what is imported later."""
    watcher.after("threading", _conditions)
    watcher.after("queue", _simple_queues)
    watcher.after("asyncio.base_events", _loops)
    os.register_at_fork(after_in_child=_forked)
