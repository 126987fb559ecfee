"""Gives time-machine the clocks in C, whose functions it changes: another callable ends the process.

https://github.com/adamchainz/time-machine/pull/548. The recorder has its own in their places at all other
times; they call the ones in C, so that a time that was travelled to reaches them too.
"""

from __future__ import annotations

import functools
import gc
import time

TYPE_CHECKING = False  # importing typing costs milliseconds at the start of every process
if TYPE_CHECKING:
    from typing import Any

    from .watching import Watcher

NAME = "_time_machine"
_MOMENTS = ("now", "utcnow")


def moments_of(kind: Any) -> Any:
    """Return the dictionary of a class written in C, whose attributes cannot be set directly."""
    (entries,) = gc.get_referents(kind.__dict__)
    return entries


def changed(kind: Any) -> None:
    """Invalidate the interpreter's lookup cache after a class's dictionary changed."""
    import ctypes  # noqa: PLC0415 -- it takes milliseconds

    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


class _InC:
    """The clocks before anything took their places."""

    def __init__(self) -> None:
        self._clocks = {name: each for name, each in vars(time).items() if type(each) is type(len)}
        self._class: Any = None
        self._moments: dict[str, Any] = {}

    def keep(self, datetime: Any) -> None:
        """Keep datetime's, which is not imported by every program."""
        self._class = datetime.datetime
        self._moments = {name: vars(self._class)[name] for name in _MOMENTS}

    def run(self, inner: Any, *arguments: Any) -> Any:
        """Call a function while the original clocks are in place."""
        clocks, moments = vars(time), moments_of(self._class) if self._class is not None else {}
        ours = [(held, {name: held[name] for name in own}) for held, own in self._both(clocks, moments)]
        for held, own in self._both(clocks, moments):
            held.update(own)
        self._told()
        try:
            return inner(*arguments)
        finally:
            for held, before in ours:
                held.update(before)
            self._told()

    def _both(self, clocks: Any, moments: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        return (clocks, self._clocks), (moments, self._moments)

    def _told(self) -> None:
        if self._class is not None:
            changed(self._class)

    def follow(self, module: Any) -> None:
        """Let the module's functions find them."""
        for name in ("patch", "patch_if_needed", "unpatch"):
            inner = getattr(module, name, None)
            if callable(inner):
                setattr(module, name, functools.partial(self.run, inner))


def install(watcher: Watcher) -> None:
    """Keep the clocks, before they are watched."""
    clocks = _InC()
    watcher.after("datetime", clocks.keep)
    watcher.around(NAME, clocks.run)
    watcher.after(NAME, clocks.follow)
