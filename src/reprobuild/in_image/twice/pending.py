"""What a thread has seen since its last record: each its own, as they come in no order with each other's."""

from __future__ import annotations

import hashlib
import threading
from collections import deque

MOST_PARTS = 512
"""Parts of one record that are told one by one; the rest are folded into one."""
MOST_AHEAD = 512
"""Batches of a thread that are kept; of one that only reads, the model's inputs tell as much."""


def is_main() -> bool:
    """Return whether this is the main thread."""
    return threading.current_thread() is threading.main_thread()


class Pending(threading.local):
    """Of each thread: the parts of its next record."""

    def __init__(self) -> None:
        self._parts: list[list[str]] = []
        self._folded = hashlib.sha256()
        self.losses: list[float] = []
        self.sample = ""
        """Values of some parameters, for distances between machines."""
        self._ahead: deque[list[str]] = deque(maxlen=MOST_AHEAD)

    def batch(self, digest: str, rows: str) -> None:
        """Add a batch. A thread may read ahead, while another computes: it counts where this one computes."""
        if is_main():
            self.add("batch", digest, rows)
        else:
            self._ahead.append(["batch", digest[:32], rows])

    def add(self, name: str, digest: str, detail: str) -> None:
        """Add a part."""
        ahead, self._ahead = self._ahead, deque(maxlen=MOST_AHEAD)
        for part in (*ahead, [name, digest[:32], detail]):
            if len(self._parts) < MOST_PARTS:
                self._parts.append(part)
            else:
                self._folded.update(f"{part[0]} {part[1]}".encode())

    def take(self) -> tuple[list[list[str]], list[float]]:
        """Return the parts and the losses, and forget them."""
        parts, self._parts = self._parts, []
        losses, self.losses = self.losses, []
        if len(parts) >= MOST_PARTS:
            parts = [*parts, ["more", self._folded.hexdigest()[:32], ""]]
            self._folded = hashlib.sha256()
        return parts, losses

    def put_back(self, parts: list[list[str]], losses: list[float]) -> None:
        """Let what was taken count for the next record, of which nothing was added since."""
        self._parts, self.losses = parts, losses
