"""Keeps hashes of texts that hold the present time or a drawn name: a run is often named by one.

Such a hash is another one in each run, whatever else the text holds. What is computed of it counts.
"""

from __future__ import annotations

import functools
import re
import sys
import time

from . import drawn_names
from .drawn_names import Instead

TYPE_CHECKING = False  # importing typing costs milliseconds at the start of every process
if TYPE_CHECKING:
    from typing import Any

    from .pace import Pace
    from .watching import Watcher

_NAMES = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "blake2b", "blake2s", "new")
_MOST_BYTES = 1024
"""Of a text, at its beginning and at its end: there a run says when it was."""
_MOST = 10_000
"""Hashes of a process that are looked at: each takes microseconds."""
_SECONDS = re.compile(r"(?<![\d.])1\d{9}(?:\d{9}|\d{6}|\d{3}|\.\d+)?(?!\d)")
"""Of a clock that counts from 1970, to the second or less."""
_MINUTES = ("%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y%m%d%H%M", "%Y%m%d_%H%M", "%Y%m%d-%H%M", "%Y%m%dT%H%M")
_KINDS, _RECENT, _SHORTEST = ("uuids", "drawn names"), 50, 6
"""Names that a hash may be made of: their kinds, how many of each, and characters."""
_clock = getattr(time.time, "__wrapped__", time.time)
_began = _clock()


class _Hashing(Instead):
    """Takes the place of a function that makes a hash."""

    def __init__(self, inner: Any, keep: Any) -> None:
        super().__init__(inner, None)
        self._keep = keep

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Make the hash, and keep it if that is to be."""
        made = self._inner(*arguments, **keywords)
        own = str(sys._getframe(1).f_globals.get("__name__")).startswith(__package__)
        for each in () if own else arguments:
            if type(each) is bytes and each[:_MOST_BYTES].isascii():
                self._keep(each, made)
        return made


def is_of_this_run(data: bytes, began: float, now: float) -> bool:
    """Return whether a text holds a time between two, in seconds since 1970 or as a date, or a drawn name."""
    told = data.decode("utf-8", "ignore")
    for found in _SECONDS.findall(told):
        seconds = float(f"{found[:10]}.{found[10:].lstrip('.')}")
        if int(began) <= seconds <= now + 1:
            return True
    # A date is told to the minute or better, in the program's zone or in UTC.
    for moment in {began, now - 60, now} if "20" in told else ():
        for fields in (time.localtime(moment), time.gmtime(moment)):
            if began - 60 < moment and any(time.strftime(each, fields) in told for each in _MINUTES):
                return True
    names = drawn_names.table()
    recent = (name for kind in _KINDS for name in names.get(kind, ())[-_RECENT:])
    return any(len(name) >= _SHORTEST and name in told for name in recent)


def _watch(faster: Pace | None, module: Any) -> None:
    left = [_MOST]
    shown = faster.of("time") if faster is not None else float

    def keep(data: bytes, made: Any) -> None:
        if left[0] > 0:
            left[0] -= 1
            part = data if len(data) <= 2 * _MOST_BYTES else data[:_MOST_BYTES] + b" " + data[-_MOST_BYTES:]
            if is_of_this_run(part, _began, shown(_clock())):
                drawn_names.add("drawn names", made.copy().hexdigest())

    for name in _NAMES:
        inner = getattr(module, name)
        if isinstance(inner, type):
            continue  # of which a program may make a class of its own
        made = _Hashing(inner, keep)
        made.__dict__.update(__module__="hashlib", __name__=name)  # by which it is pickled
        setattr(module, name, made)


def install(watcher: Watcher, faster: Pace | None) -> None:
    """Watch hashlib once it is imported."""
    watcher.after("hashlib", functools.partial(_watch, faster))
