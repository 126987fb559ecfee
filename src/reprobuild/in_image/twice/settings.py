"""The recorder's variables, for a process that a program started without them, as by ``env -i``."""

from __future__ import annotations

import os

FILE = "settings"
"""Beside this module: ``NAME=value``, each ended by a NUL as in /proc/self/environ, which the run wrote."""


def path() -> str:
    """Return where the file is, if the run wrote one."""
    return os.path.join(os.path.dirname(__file__), FILE)  # noqa: PTH118, PTH120 -- pathlib is not imported for this


VALUES = "REPROBUILD_TWICE_VALUES"
"""What stands in the file alone: the values of a statement in another run, which no environment may hold."""


def restore() -> None:
    """Set the variables, for this process and those that it starts."""
    for name, value in every().items():
        if name != os.fsencode(VALUES):
            os.environb[name] = value


def every() -> dict[bytes, bytes]:
    """Return what the file has; nothing where none was written: this process is not recorded."""
    try:
        with open(path(), "rb") as file:  # noqa: PTH123 -- as above
            pairs = [each.partition(b"=") for each in file.read().split(b"\0")[:-1]]
    except OSError:
        return {}
    return {name: value for name, _, value in pairs}
