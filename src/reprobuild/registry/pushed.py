"""Record of the last push of each lock's image, so that later commands can name it by digest."""

from __future__ import annotations

import re

from ..host.home import Home, atomic_write, storage_errors
from .client import Target


def remember_push(home: Home, lock: str, target: Target, digest: str) -> None:
    """Record where the image of a lock, named by the lock's digest, was pushed. Raises `StorageError`."""
    atomic_write(
        home.folder("pushed") / _name(lock), f"{target.host}/{target.repository}@{digest}\n".encode()
    )


def last_push(home: Home, lock: str) -> str | None:
    """Return ``REGISTRY/NAME@DIGEST`` of the last push of a lock's image; None without one."""
    record = home.folder("pushed") / _name(lock)
    with storage_errors(record):
        return record.read_text().strip() if record.exists() else None


def _name(lock: str) -> str:
    assert re.fullmatch("sha256:[0-9a-f]{64}", lock), lock
    return lock.removeprefix("sha256:")
