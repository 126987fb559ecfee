"""Read the pins that both sides of a lock file with merge conflicts share. Pure.

Each side is what git would have kept of it: its own lines in a conflict, and around it the merged ones. So
the digest of neither fits, and what is read here is good for pins alone: a resolve holds every file anew.
"""

from __future__ import annotations

import io

from ..errors import LockError
from .model import Lock
from .own_files import NAME
from .platforms import parse_halves

_OURS, _BEFORE, _THEIRS, _END = "<<<<<<<", "|||||||", "=======", ">>>>>>>"


def sides(text: str) -> tuple[str, str] | None:
    """Return both sides of a file with git's conflict markers; None for any other file."""
    ours, theirs = list[str](), list[str]()
    found, mark = False, _END
    conflict: dict[str, list[str]] = {}
    raw: list[str] = []
    for line in io.StringIO(text, newline="\n"):
        if mark == _END:
            if line.startswith(_OURS):
                mark, conflict, raw = _OURS, {_OURS: [], _BEFORE: [], _THEIRS: []}, [line]
            else:
                ours.append(line)
                theirs.append(line)
            continue
        raw.append(line)
        if mark == _OURS and line.startswith(_BEFORE):
            mark = _BEFORE
        elif mark != _THEIRS and line.rstrip("\n") == _THEIRS:
            mark = _THEIRS
        elif mark == _THEIRS and line.startswith(_END):
            found, mark = True, _END
            ours += conflict[_OURS]
            theirs += conflict[_THEIRS]
        else:
            conflict[mark].append(line)
    if mark != _END:  # one that does not end is none, and whoever reads the file says what is wrong with it
        ours += raw
        theirs += raw
    return ("".join(ours), "".join(theirs)) if found else None


def agreed_pins(text: str, where: str) -> tuple[tuple[Lock, ...], frozenset[str]]:
    """Return the locks of our side, and the names of those packages that are pinned otherwise on the other.

    A package that differs on one platform is among those names. Raises `LockError` for a side that is not a
    lock file, or has another base image than the other.
    """
    halves = sides(text) or (text, text)
    ours, theirs = (
        parse_halves(half, f"{where}: {side} of a merge")
        for side, half in zip(("ours", "theirs"), halves, strict=True)
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
        differ |= {NAME} if lock.own_files != other.own_files else set()
    return ours, frozenset(differ)


def _pins(lock: Lock) -> dict[str, str]:
    """Return name → version, of a conda package with its build."""
    pins = {p.name: p.version for p in lock.python}
    pins |= {p.name: f"{p.version} {p.build}" for p in lock.conda}
    return pins | {p.name: p.version for p in lock.debian}
