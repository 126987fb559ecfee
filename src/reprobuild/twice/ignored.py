"""Output that a user excludes: lines by a regular expression, files by a path pattern."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property

_UP = "\x1b[A"
_BACK_UP = re.compile(r"\n([^\n]*)\x1b\[A")
"""A new line from which the cursor goes back up: bars within bars are drawn so, how often depends on time."""


@dataclass(frozen=True)
class Ignored:
    """The patterns, and how often each was met."""

    line_patterns: tuple[str, ...] = ()
    file_patterns: tuple[str, ...] = ()
    met: Counter[str] = field(default_factory=Counter, compare=False)

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
        """Return the relevant lines of a program's output, which may be binary."""
        found = []
        text = data.decode("utf-8", "backslashreplace")
        for line in _BACK_UP.sub(r"\r\1", text).split("\n") if _UP in text else text.split("\n"):
            pattern = next((each for each in self._expressions if each.search(line)), None)
            if pattern is None:
                found.append(line)
            else:
                self.met[f"lines {pattern.pattern}"] += 1
        return found
