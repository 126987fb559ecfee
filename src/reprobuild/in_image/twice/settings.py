"""The recorder's variables, for a process that a program started without them, as by ``env -i``."""

from __future__ import annotations

import os

FILE = "settings"
"""Beside this module: ``NAME=value``, each ended by a NUL as in /proc/self/environ, which the run wrote."""


def path() -> str:
    """Return where the file is, if the run wrote one."""
    return os.path.join(os.path.dirname(__file__), FILE)  # noqa: PTH118, PTH120 -- pathlib is not imported for this


def restore() -> None:
    """Set the variables, for this process and those that it starts."""
    try:
        with open(path(), "rb") as file:  # noqa: PTH123 -- as above
            for each in file.read().split(b"\0")[:-1]:
                name, _, value = each.partition(b"=")
                os.environb[name] = value
    except OSError:  # none was written: this process is not recorded
        return
