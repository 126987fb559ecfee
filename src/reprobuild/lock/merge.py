"""A lock file with the conflicts of a merge → the pins that both sides have. Pure.

Each side is what git would have kept of it: its own lines in a conflict, and around it the merged ones. So
the digest of neither fits, and what is read here is good for pins alone: a resolve holds every file anew.
"""

from __future__ import annotations

import re

from ..errors import LockError
from .model import Lock
from .own_files import NAME
from .platforms import parse_halves

_CONFLICT = re.compile(
    r"^<<<<<<<[^\n]*\n(?P<ours>.*?)(?:^\|\|\|\|\|\|\|[^\n]*\n.*?)?^=======\n(?P<theirs>.*?)^>>>>>>>[^\n]*\n",
    re.MULTILINE | re.DOTALL,
)


def has_conflicts(text: str) -> bool:
    """Whether a file's text has git's marks of a conflict."""
    return _CONFLICT.search(text) is not None


def agreed_pins(text: str, where: str) -> tuple[tuple[Lock, ...], frozenset[str]]:
    """Return the locks of our side, and the names of those packages that are pinned otherwise on the other.

    A package that differs on one platform is among those names. Raises `LockError` for a side that is not a
    lock file, or has another base image than the other.
    """
    ours, theirs = (
        parse_halves(_CONFLICT.sub(rf"\g<{side}>", text), f"{where}: {side} of a merge")
        for side in ("ours", "theirs")
    )
    there = {lock.platform: lock for lock in theirs}
    differ: set[str] = set()
    for lock in ours:
        if (other := there.get(lock.platform)) is None:
            continue
        if lock.base != other.base:
            raise LockError(
                f"{where}: the sides of a merge have different base images",
                hint="restore the lock of one side, or lock everything anew with `reprobuild lock --upgrade`",
            )
        pins = _pins(other)
        differ |= {name for name, pin in _pins(lock).items() if pins.get(name) != pin}
    return ours, frozenset(differ)


def _pins(lock: Lock) -> dict[str, str]:
    """Return name → version, of a conda package with its build."""
    pins = {p.name: p.version for p in lock.python}
    pins |= {p.name: f"{p.version} {p.build}" for p in lock.conda}
    pins |= {NAME: str(lock.own_files)} if lock.own_files is not None else {}
    return pins | {p.name: p.version for p in lock.debian}
