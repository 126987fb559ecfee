"""Record of the last push of each lock's image, so that later commands can name it by digest."""

from __future__ import annotations

import re

from ...errors import StorageError
from ...host.home import Home, atomic_write, storage_errors
from ...host.verified import read_sealed, sealed
from .client import Target


def remember_push(home: Home, lock: str, target: Target, digest: str) -> None:
    """Record where the image of a lock, named by the lock's digest, was pushed. Raises `StorageError`."""
    content = f"{target.host}/{target.repository}@{digest}\n".encode()
    # Sealed: with one letter of it changed, what is rendered would name another image.
    atomic_write(home.folder("pushed") / _name(lock), sealed(_name(lock), content))


def last_push(home: Home, lock: str) -> str | None:
    """Return ``REGISTRY/NAME@DIGEST`` of the last push of a lock's image; None without one.

    Raises `StorageError` for a record that is damaged.
    """
    record = home.folder("pushed") / _name(lock)
    with storage_errors(record):
        if not record.exists():
            return None
        if not (content := read_sealed(record)):
            raise StorageError(
                f"{record} is damaged: it says where the image of the lock was pushed",
                hint="push the image again, or name it on the command line",
            )
    return content.decode().strip()


def _name(lock: str) -> str:
    assert re.fullmatch("sha256:[0-9a-f]{64}", lock), lock
    return lock.removeprefix("sha256:")
