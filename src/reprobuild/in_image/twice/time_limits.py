"""Records, for a trace, whether what the program waited for came within the time that it allowed."""

from __future__ import annotations

import functools
import sys
from typing import Any

from .places import here, is_users
from .watching import Watcher

_IN_TIME = "it ended in time"
_LIMITED = (
    ("concurrent.futures", ("Future",), "result", 1),
    ("multiprocessing.pool", ("ApplyResult",), "get", 1),
    ("subprocess", (), "run", 99),
    ("subprocess", ("Popen",), "wait", 1),
    ("subprocess", ("Popen",), "communicate", 2),
)
"""Module, class and function, and which of its arguments the time is that raises where it is over."""


def install(watcher: Watcher, sources: Any) -> None:
    """Watch what is imported later."""
    for module, owner, name, at in _LIMITED:
        watcher.after(module, functools.partial(_watch, sources=sources, owner=owner, name=name, at=at))
    watcher.after("asyncio", functools.partial(_watch_tasks, sources=sources))


def _watch(module: Any, sources: Any, owner: tuple[str, ...], name: str, at: int) -> None:
    holder = functools.reduce(getattr, owner, module)
    inner = getattr(holder, name)
    label = ".".join((*owner, name) if owner else (module.__name__, name))

    @functools.wraps(inner)
    def wrapper(*given: Any, **named: Any) -> Any:
        given, named = _by_name(given, named, at)
        if named.get("timeout") is None or not is_users(sys._getframe(1).f_code.co_filename):
            return inner(*given, **named)
        try:
            result = sources.call_of("timeout", label, inner, given, named)
        except Exception as error:
            sources.note("timeout", label, type(error).__name__)
            raise
        sources.note("timeout", label, _IN_TIME)
        return result

    setattr(holder, name, wrapper)


def _watch_tasks(module: Any, sources: Any) -> None:
    inner, label = module.wait_for, "asyncio.wait_for"

    @functools.wraps(inner)
    def wait_for(*given: Any, **named: Any) -> Any:
        given, named = _by_name(given, named, 1)
        if named.get("timeout") is None or not is_users(sys._getframe(1).f_code.co_filename):
            return inner(*given, **named)
        return told(sources.call_of("timeout", label, inner, given, named), here(2, imports=False))

    async def told(waiting: Any, place: Any) -> Any:
        try:
            result = await waiting
        except Exception as error:
            sources.note("timeout", label, type(error).__name__, place)
            raise
        sources.note("timeout", label, _IN_TIME, place)
        return result

    module.wait_for = module.tasks.wait_for = wait_for


def _by_name(given: tuple[Any, ...], named: Any, at: int) -> tuple[tuple[Any, ...], Any]:
    """Return arguments with the time limit, if it is the last one by its place, by its name."""
    if len(given) != at + 1:
        return given, named
    return given[:at], {**named, "timeout": given[at]}
