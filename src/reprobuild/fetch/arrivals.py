"""Progress of a download by file, so that work can start on each file as it arrives."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

from .download import Stopped


class Arrivals:
    """Arrivals of all files of a lock. Download threads update it; any thread may query it.

    With nothing missing, everything is there and nothing ever fails.
    """

    def __init__(self, missing: Collection[str] = ()) -> None:
        self._fetched = frozenset(missing)
        self._missing = set(missing)
        self._failed = False
        self._changed = threading.Condition()
        self._listeners: list[Callable[[], object]] = []

    @property
    def failed(self) -> bool:
        """Whether a file will not come."""
        return self._failed

    def fetched(self, sha256: str) -> bool:
        """Whether a file was not there at the start."""
        return sha256 in self._fetched

    def has(self, sha256: str) -> bool:
        """Whether a file is there. Raises `Stopped` when some file will not come: `fetching` says which."""
        with self._changed:
            self._check()
            return sha256 not in self._missing

    def wait(self, wanted: Collection[str] | None = None) -> None:
        """Wait for some files, by default for all. Raises `Stopped` as `has`."""
        with self._changed:
            while self._missing if wanted is None else not self._missing.isdisjoint(wanted):
                self._check()
                self._changed.wait()

    def listen(self, listener: Callable[[], object]) -> None:
        """Register a function to call after each change, in the thread that reports the change."""
        with self._changed:
            self._listeners.append(listener)

    def came(self, sha256: str) -> None:
        """Report that a file is in the store."""
        with self._changed:
            self._missing.discard(sha256)
        self._tell()

    def fail(self) -> None:
        """Report that a file cannot be downloaded."""
        self._failed = True
        self._tell()

    def _check(self) -> None:
        if self._failed:
            raise Stopped

    def _tell(self) -> None:
        with self._changed:
            self._changed.notify_all()
            listeners = list(self._listeners)
        for listener in listeners:
            listener()
