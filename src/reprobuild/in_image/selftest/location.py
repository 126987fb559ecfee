"""Where the program and the image's other files of reprobuild lie."""

from __future__ import annotations

import hashlib
from pathlib import Path

PROGRAM = Path(__file__)
"""The one file that the modules have become; it starts itself again for each interpreter."""


def image_file(name: str) -> Path:
    """Return the path of a file beside the program, such as ``manifest.tsv``; it need not be there."""
    return PROGRAM.with_name(name)


def program_hash() -> str:
    """Return the sha256 of this program, as 64 hex digits; another program gives other results."""
    return hashlib.sha256(PROGRAM.read_bytes()).hexdigest()
