"""Where the program and the image's other files of reprobuild lie."""

from __future__ import annotations

import hashlib
import importlib
from pathlib import Path
from typing import Any

from .outcomes import NotRun

PROGRAM = Path(__file__)
"""The one file that the modules have become; it starts itself again for each interpreter."""


def image_file(name: str) -> Path:
    """Return the path of a file beside the program, such as ``manifest.tsv``; it need not be there."""
    return PROGRAM.with_name(name)


def program_hash() -> str:
    """Return the sha256 of this program, as 64 hex digits; another program gives other results."""
    return hashlib.sha256(PROGRAM.read_bytes()).hexdigest()


def locked() -> dict[str, Any]:
    """Return what reprobuild has written into the image's lock; raises `NotRun` where there is none."""
    lock = image_file("pylock.toml")
    try:
        text = lock.read_text("utf-8")
    except OSError:
        raise NotRun(f"{lock} does not exist") from None
    try:
        parser: Any = importlib.import_module("tomllib")
    except ImportError:  # before Python 3.11
        parser = importlib.import_module("pip._vendor.tomli")
    table: dict[str, Any] = parser.loads(text)["tool"]["reprobuild"]
    return table
