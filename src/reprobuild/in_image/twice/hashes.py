"""Keeps hashes of texts that hold the present time or a drawn name: a run is often named by one.

Each is kept with a digest of its text without these: it is a name only if that is the same in both runs.
Else what was hashed beside the time may differ, and that is a result.
"""

from __future__ import annotations

import contextlib
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

HASH = "hash of "
"""How the kinds of these names begin; a digest of the text without times and names follows."""
_NAMES = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "blake2b", "blake2s", "new")
_ENDS = 1024
"""Bytes of a text, at its beginning and at its end, at which it mostly says when it was."""
_MOST_BYTES = 4 << 20
_MOST = 10_000
"""Hashes of a process that are looked at: each takes microseconds."""
_TIME = re.compile(
    r"(?<![\d.])(?P<seconds>1\d{9})(?P<parts>\d{9}|\d{6}|\d{3}|\.\d+)?(?!\d)"
    r"|(?<!\d)(?P<date>\d{4}-?\d\d-?\d\d[T _-]?\d\d:?\d\d)(?::?\d\d(?:[.,]\d+)?)?(?!\d)"
)
"""Seconds since 1970, or a date with its minute, and what belongs to it."""
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
            if type(each) is bytes and each[:_ENDS].isascii():
                self._keep(each, made)
        return made


def without_run(told: str, began: float, now: float) -> str:
    """Return a text without the times between two, in seconds since 1970, and without drawn names."""

    def replaced(found: Any) -> str:
        if found["seconds"]:
            moments = [float(f"{found['seconds']}.{(found['parts'] or '0').lstrip('.')}")]
        else:
            year, month, day, hour, minute = _numbers(found["date"])
            fields = (year, month, day, hour, minute, 0, 0, 0)
            # In the program's zone, or in UTC.
            moments = [time.mktime((*fields, -1)), time.mktime((*fields, 0)) - time.timezone]
        return "<time>" if any(began - 60 < moment <= now + 1 for moment in moments) else str(found[0])

    told = _TIME.sub(replaced, told)
    for kind in _KINDS:
        for name in drawn_names.recent(kind, _RECENT):
            if len(name) >= _SHORTEST:
                told = told.replace(name, "<name>")
    return told


def _numbers(date: str) -> tuple[int, int, int, int, int]:
    digits = "".join(filter(str.isdigit, date))
    year, month, day, hour, minute = digits[:4], digits[4:6], digits[6:8], digits[8:10], digits[10:12]
    return int(year), int(month), int(day), int(hour), int(minute)


def _watch(faster: Pace | None, module: Any) -> None:
    left = [_MOST]
    shown = faster.of("time") if faster is not None else float

    def keep(data: bytes, made: Any) -> None:
        left[0] -= 1
        if left[0] < 0 or len(data) > _MOST_BYTES:
            return
        now = shown(_clock())
        ends = (data if len(data) <= 2 * _ENDS else data[:_ENDS] + b" " + data[-_ENDS:]).decode("latin-1")
        with contextlib.suppress(ValueError, OverflowError):  # it is no text, or has a date of no year
            if without_run(ends, _began, now) != ends:
                rest = without_run(data.decode(), _began, now)
                kind = HASH + module.blake2b(rest.encode(), digest_size=8).hexdigest()
                drawn_names.add(kind, made.copy().hexdigest())

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
