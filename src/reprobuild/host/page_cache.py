"""Release of the page cache of files that will not be read again soon.

A build writes and reads gigabytes once. The kernel keeps them all, each page in memory that it must make free
first. In a virtual machine, whose host must give that memory, this takes longer than the disk: two seconds a
gigabyte were measured, and a seventh of that in pages that are used again.
"""

from __future__ import annotations

import io
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_STEP = 16 << 20
_MOST_WAITED = 2.0
"""Total seconds of all threads. On a disk slower than its writers, more would cost time."""


class PageCache:
    """Release of pages during one task, until the disk makes it wait too long. Thread-safe."""

    def __init__(self, *, keeps: bool = False) -> None:
        """``keeps``: whether to drop nothing, because the files are read again soon."""
        self._left = 0.0 if keeps else _MOST_WAITED
        self._mutex = threading.Lock()

    def give_back(self, descriptor: int, ranges: Sequence[tuple[int, int]]) -> None:
        """Start writing some ranges (start, bytes) of a file to disk; drop those already written."""
        if self._left <= 0:
            return
        begin = time.monotonic()
        try:
            for start, size in ranges:
                os.posix_fadvise(descriptor, start, size, os.POSIX_FADV_DONTNEED)
            waited = time.monotonic() - begin
        except OSError:  # the file system has no such thing
            waited = _MOST_WAITED
        with self._mutex:
            self._left -= waited


class Passed:
    """Ranges of an open file to drop from the page cache, in batches."""

    def __init__(self, cache: PageCache, descriptor: int) -> None:
        self._cache, self._descriptor = cache, descriptor
        self._new: list[tuple[int, int]] = []
        self._begun: list[tuple[int, int]] = []
        """Ranges that may not be on the disk yet."""
        self._size = 0

    def add(self, start: int, size: int) -> None:
        """Add a range."""
        self._new.append((start, size))
        self._size += size
        if self._size >= _STEP:
            self._cache.give_back(self._descriptor, self._begun + self._new)
            self._begun, self._new, self._size = self._new, [], 0


class PassingFile(io.FileIO):
    """A new unbuffered file that is written sequentially and not read soon."""

    def __init__(self, path: Path, cache: PageCache) -> None:
        super().__init__(path, "wb")
        self._passed, self._at = Passed(cache, self.fileno()), 0

    def write(self, data: Any, /) -> int:
        """Write as much as the disk takes at once; return how much."""
        written = super().write(data)
        self._passed.add(self._at, written)
        self._at += written
        return written
