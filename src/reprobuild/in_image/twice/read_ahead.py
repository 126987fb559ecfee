"""Batches that a thread reads ahead, while the main one computes: they come in no order with its steps."""

from __future__ import annotations

import threading
from collections import deque

MOST = 512
"""Batches of a thread that are kept; of one that only reads, the model's inputs tell as much."""


class ReadAhead(threading.local):
    """Of each thread: what it has read, until it computes something itself."""

    def __init__(self) -> None:
        self._read: deque[tuple[str, str, str]] = deque(maxlen=MOST)

    def keep(self, batch: tuple[str, str, str]) -> bool:
        """Keep a batch, and return True; False in the main thread, whose batches belong where they come."""
        if threading.current_thread() is threading.main_thread():
            return False
        self._read.append(batch)
        return True

    def take(self) -> list[tuple[str, str, str]]:
        """Return what this thread has read, before something that it computes, and forget it."""
        found = list(self._read)
        self._read.clear()
        return found
