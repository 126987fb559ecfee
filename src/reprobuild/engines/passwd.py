"""IDs and home directories of an image's users and groups.

/etc/passwd and /etc/group are read from the unpacked layers, as a container would find them there; both are
a stranger's.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import HostError
from ..host.descriptors import FOLDER, closing_descriptor

_LIMIT = 1 << 20
"""Bytes that are read of either file."""
_HIGHEST = 2**31


@dataclass(frozen=True, slots=True)
class User:
    """The user that a program runs as."""

    ids: tuple[int, int]
    """Numeric IDs of user and group."""
    home: str
    """The home directory; ``/`` where the image has no such user, as with Docker and runc."""
    named: bool
    """Whether the image has such a user."""


def user_of(text: str, layers: Sequence[Path]) -> User:
    """Return the user of ``USER[:GROUP]``, each a number or a name; layers are lowest first.

    Without a group it is the user's own, as the image has it, else 0. Raises `HostError`.
    """
    user, given, group = text.partition(":")
    rows = _rows("passwd", layers)
    if _is_number(user):  # of a user whose name is a number, Docker knows nothing either
        uid = int(user)
        found = next((row for row in rows if int(row[2]) == uid), None)
    elif (found := next((row for row in rows if row[0] == user), None)) is not None:
        uid = int(found[2])
    else:
        raise _unknown("user", user, rows)
    if not given:
        gid = int(found[3]) if found is not None else 0
    elif _is_number(group):
        gid = int(group)
    else:
        groups = _rows("group", layers)
        named = next((row for row in groups if row[0] == group), None)
        if named is None:
            raise _unknown("group", group, groups)
        gid = int(named[2])
    for number in (uid, gid):
        if number >= _HIGHEST:
            raise HostError(
                f"--user {text}: {number} is too high for an id", hint="give one below 2147483648"
            )
    home = found[5] if found is not None and len(found) > 5 else ""
    home = home if home.startswith("/") and home.isprintable() else "/"
    return User((uid, gid), home, named=found is not None)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _unknown(kind: str, name: str, rows: Sequence[Sequence[str]]) -> HostError:
    some = ", ".join(row[0] for row in rows[:40])
    return HostError(
        f"the image has no {kind} {name!r}",
        hint=f"give a number, or one that it has: {some}" if some else "it names none; give a number",
    )


def _rows(name: str, layers: Sequence[Path]) -> list[list[str]]:
    """Return the well-formed lines of a file in /etc, split at the colons; empty if the file is missing."""
    least = {"passwd": 4, "group": 3}[name]
    text = _content(name, layers).decode("utf-8", "replace")
    rows = [line.split(":") for line in text.splitlines()]
    return [
        row
        for row in rows
        if len(row) >= least and row[0] and all(n.isdecimal() and len(n) < 11 for n in row[2:least])
    ]


def _content(name: str, layers: Sequence[Path]) -> bytes:
    """Return the file of the uppermost layer that has one; follows no link, since it could lead out."""
    for layer in reversed(layers):
        with suppress(OSError), closing_descriptor(os.open(layer / "etc", FOLDER | os.O_NOFOLLOW)) as folder:
            entry = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if not stat.S_ISREG(entry.st_mode):
                return b""  # a layer's mark that it removes the file, or a link
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            with os.fdopen(descriptor, "rb") as file:
                return file.read(_LIMIT)
    return b""
