"""Folders that are nested deeper than a path can name."""

from __future__ import annotations

import os
from pathlib import Path


def nested(folder: Path) -> None:
    """Make folders whose path is longer than the system takes, as a program does that goes on from each."""
    held = os.open(folder, os.O_DIRECTORY)
    for _ in range(30):
        os.mkdir("d" * 200, dir_fd=held)
        below = os.open("d" * 200, os.O_DIRECTORY, dir_fd=held)
        os.close(held)
        held = below
    os.close(held)
