"""Check whether a stored file still matches its hash, without hashing it each time.

A verified file gets a modification time made of its hash, its size, its inode, this boot of the machine and
the week. Whatever writes to the file sets another time, so a time that still fits says that nothing has; any
other file is hashed. Damage by a write is found at once, damage below the file system (a bad disk, a power
cut) after the next boot, and at the latest in the next week. The time is all that is kept: there is no list
that could itself be damaged, and a file that was copied is hashed again.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from .home import open_regular
from .os_reasons import UNREADABLE
from .workers import sha256_of

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_WEEK = 7 * 24 * 3600
_MOST = 1 << 30
"""Of a sealed file. The record of a layer of a million files has a quarter of it."""


def is_unchanged(path: Path, sha256: str, *, trust: bool = True) -> bool:
    """Whether a file has the bytes of a SHA-256 (hexadecimal). With ``trust`` a `stamp` is believed.

    A pipe or a device has other bytes. Raises `OSError` where it cannot be read, which may pass; the stamp is
    gone then.
    """
    status = path.stat()
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        return False
    if trust and status.st_mtime_ns == _time(status, sha256):
        return True
    try:
        with open_regular(path) as file:
            if sha256_of(file) != sha256:
                return False
    except OSError as error:
        distrust(path, error)
        raise
    stamp(path, sha256)
    return True


def stamp(path: Path, sha256: str) -> None:
    """Record the SHA-256 of a verified file, if the file system allows it."""
    with suppress(OSError):
        wanted = _time(path.stat(), sha256)
        os.utime(path, ns=(wanted, wanted))


def distrust(path: Path, error: OSError) -> None:
    """Remove the stamp of a file that the disk did not give, so that it is hashed before its next use."""
    if error.errno in UNREADABLE:
        with suppress(OSError):
            os.utime(path)


def _time(status: os.stat_result, sha256: str) -> int:
    """Return the time of modification of a verified file, in nanoseconds: an even second before 2038."""
    facts = (sha256, status.st_size, status.st_ino, _boot(), int(time.time()) // _WEEK)
    mixed = hashlib.sha256(repr(facts).encode()).digest()
    # Some file systems keep two seconds, or 31 bits, and no fractions.
    return (int.from_bytes(mixed[:4], "big") >> 1 & ~1) * 10**9


@cache
def _boot() -> str:
    with suppress(OSError, ValueError):
        return _BOOT.read_text("ascii").strip()
    return ""


def sealed(name: str, content: bytes) -> bytes:
    """Prefix content with a hash of it and of its name, which `unsealed` verifies."""
    return f"{_seal(name, content)}\n".encode() + content


def unsealed(name: str, data: bytes) -> bytes | None:
    """Return the content that `sealed` wrote for a name; None if it is damaged or not sealed."""
    head, _, content = data.partition(b"\n")
    return content if head == _seal(name, content).encode() else None


def read_kept(path: Path, most: int) -> bytes:
    """Return the content of a file; empty above ``most`` bytes, or for a pipe, a socket or a device.

    Such a one could block for ever. Raises `OSError`.
    """
    try:
        with open_regular(path) as file:
            data = file.read(most + 1)
    except OSError as error:
        if error.errno not in (
            errno.EINVAL,
            errno.ENXIO,
        ):  # of what is no file, by `open_regular` and open(2)
            raise
        return b""
    return data if len(data) <= most else b""


def read_sealed(path: Path, name: str | None = None) -> bytes:
    """Return the content sealed with a name, or that of its file; nothing if it is damaged.

    So is what is missing, or what a disk has lost: it is made again, in a new file. Raises `OSError` for
    other faults.
    """
    try:
        return unsealed(name or path.name, read_kept(path, _MOST)) or b""
    except OSError as error:
        if error.errno not in (errno.ENOENT, *UNREADABLE):
            raise
    return b""


def _seal(name: str, content: bytes) -> str:
    return hashlib.sha256(name.encode() + b"\0" + content).hexdigest()
