"""The golden lock, and a small one of its shape."""

from __future__ import annotations

from dataclasses import replace

from conftest import GOLDEN
from reprobuild.lock.reader import parse_lock

TEXT = (GOLDEN / "pylock.torch-cu121.toml").read_text()
LOCK = parse_lock(TEXT, "golden")
SMALL = replace(
    LOCK,
    python=[p for p in LOCK.python if p.name in ("torch", "numpy", "pip")],
    debian=[p for p in LOCK.debian if p.name in ("libc6", "python3.11")],
)
"""Of the same shape as the golden one, for the many examples of a property test."""
SMALL_TEXT = SMALL.dump()
