"""Output that a user excludes: lines by a regular expression, files by a path pattern."""

from __future__ import annotations

import re
import signal
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from types import FrameType

from ..errors import RepeatError

_UP = "\x1b[A"
_BACK_UP = re.compile(r"\n([^\n]*)\x1b\[A")
"""A new line from which the cursor goes back up: bars within bars are drawn so, how often depends on time."""

_MOST_SECONDS = 20.0
"""Processor time of all searches together: a pattern such as ``(a+)+$``, which a recording may bring, has no
end."""


@dataclass(frozen=True)
class Ignored:
    """The patterns, and how often each was met."""

    line_patterns: tuple[str, ...] = ()
    file_patterns: tuple[str, ...] = ()
    met: Counter[str] = field(default_factory=Counter, compare=False)
    left: list[float] = field(default_factory=lambda: [_MOST_SECONDS], compare=False)
    """Seconds that may still be spent; one number."""

    def together(self, other: Ignored) -> Ignored:
        """Return both, each pattern once."""
        return Ignored(
            tuple(dict.fromkeys((*self.line_patterns, *other.line_patterns))),
            tuple(dict.fromkeys((*self.file_patterns, *other.file_patterns))),
        )

    @cached_property
    def _expressions(self) -> Sequence[re.Pattern[str]]:
        return [re.compile(pattern) for pattern in self.line_patterns]

    def has_file(self, path: str) -> bool:
        """Return whether a file does not count, by its path or by its name."""
        for pattern in self.file_patterns:
            if fnmatchcase(path, pattern) or fnmatchcase(path.rpartition("/")[2], pattern):
                self.met[f"files {pattern}"] += 1
                return True
        return False

    def lines(self, data: bytes) -> list[str]:
        """Return the relevant lines of a program's output, which may be binary. Raises `RepeatError`."""
        text = data.decode("utf-8", "backslashreplace")
        lines = _BACK_UP.sub(r"\r\1", text).split("\n") if _UP in text else text.split("\n")
        if not self.line_patterns:
            return lines
        with _limited(self.left):
            return [line for line in lines if not self._has_line(line)]

    def _has_line(self, line: str) -> bool:
        pattern = next((each for each in self._expressions if each.search(line)), None)
        if pattern is not None:
            self.met[f"lines {pattern.pattern}"] += 1
        return pattern is not None


@contextmanager
def _limited(left: list[float]) -> Iterator[None]:
    """Raise `RepeatError` once a block has taken that much processor time, which is counted down.

    In the main thread alone, where Python handles signals; a search of `re` looks for them as it goes on.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise RepeatError(
            f"the patterns of lines to ignore were not searched for within {_MOST_SECONDS:g} s",
            hint="a repetition in a repetition, such as (a+)+, takes forever: look at --ignore-line, and at"
            " the patterns of the recording",
        )

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, max(left[0], 1e-3))
    try:
        yield
    finally:
        left[0], _ = signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
