"""One file of records a process: lines of JSON, each written at once, so that a crash loses none.

The file is made when the first record is written. A forked child writes one of its own. Bounded: after
`MOST` bytes one last record says that the rest is missing.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

FORMAT = 1
MOST = 1 << 30
"""Bytes of one process's file."""


class Writer:
    """Writes this process's records into a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._file = -1
        self._bytes = 0
        self._path = ""
        self._rank = ""
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self._lock = threading.Lock()
        if self._file >= 0:
            os.close(self._file)
        self._file, self._bytes = -1, 0

    def write(self, record: dict[str, Any]) -> None:
        """Write one record."""
        with self._lock:
            if self._file < 0:
                self._open()
            self._line(record)

    def _line(self, record: dict[str, Any]) -> None:
        line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        if self._bytes + len(line) > MOST:
            if self._bytes <= MOST:
                self._bytes = MOST + 1
                _all(self._file, b'{"k":"full"}\n')
            return
        self._bytes += len(line)
        _all(self._file, line)

    def tell_rank(self) -> None:
        """Write the process's rank once it has one, where it had none when its file was made."""
        if self._file >= 0 and not self._rank:
            self._rank = _rank()
            if self._rank:
                self.write({"k": "rank", "rank": self._rank})

    def path(self) -> str:
        """Return the path of this process's file, which is made if it is not there yet."""
        with self._lock:
            if self._file < 0:
                self._open()
            return self._path

    def _open(self) -> None:
        # In the order in which they are made, which is that of the programs where one follows the other.
        name = f"{time.monotonic_ns():020d}-{os.getpid()}.jsonl"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._path = f"{self._folder}/{name}"
        self._file = os.open(self._path, flags, 0o644)
        self._bytes = 0
        self._rank = _rank()
        self._line({"k": "process", "format": FORMAT, "rank": self._rank, **identity()})


def _rank() -> str:
    rank = os.environ.get("RANK", "")
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            rank = str(distributed.get_rank())
    except Exception:  # noqa: BLE001 -- no rank then
        rank = ""
    return rank[:20]


def identity() -> dict[str, Any]:
    """Say which process of a program this is, by what is the same in each run."""
    worker = ""
    data = sys.modules.get("torch.utils.data")
    info = data.get_worker_info() if data is not None else None
    if info is not None:
        worker = str(info.id)
    parent = sys.modules.get("multiprocessing.process")
    name = parent.current_process().name if parent is not None else "MainProcess"
    argv = [str(word)[:200] for word in getattr(sys, "argv", [])[:20]]
    return {"worker": worker, "name": str(name)[:200], "argv": argv}


def _all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


_shared: list[Writer] = []


def shared() -> Writer:
    """Return this process's writer, which the hooks and the trace share."""
    if not _shared:
        _shared.append(Writer(os.environ["REPROBUILD_TWICE"]))
    return _shared[0]
