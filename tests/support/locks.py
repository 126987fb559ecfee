"""The golden lock, and a small one of its shape."""

from __future__ import annotations

from dataclasses import replace

from conftest import GOLDEN
from reprobuild.lock.own_files import OwnFiles
from reprobuild.lock.reader import parse_lock

TEXT = (GOLDEN / "pylock.torch-cu121.toml").read_text()
LOCK = parse_lock(TEXT, "golden")
"""From before locks recorded reprobuild's own files: such a lock reads, and renders to the same bytes."""
OTHER_FILES = OwnFiles(version="0.0.9", sha256={"golden.json": "0" * 64, "selftest.py": "1" * 64})
"""Of another release."""
SMALL = replace(
    LOCK,
    python=[p for p in LOCK.python if p.name in ("torch", "numpy", "pip")],
    debian=[p for p in LOCK.debian if p.name in ("libc6", "python3.11")],
    own_files=OTHER_FILES,
)
"""Of the shape that is written now, for the many examples of a property test."""
SMALL_TEXT = SMALL.dump()
