"""Verify a lock against the hashes of an imported file."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import ResolveError
from .model import Lock


def check_hashes(lock: Lock, allowed: Mapping[str, frozenset[str]]) -> None:
    """Raise `ResolveError` for files whose hashes an imported file does not allow."""
    wrong = [
        f"{c.filename} (sha256 {c.sha256[:12]}…)"
        for c in lock.conda
        if c.sha256 not in allowed.get(f"conda:{c.name}", {c.sha256})
    ]
    wrong += [
        f"{p.file.filename} (sha256 {p.file.sha256[:12]}…)"
        for p in lock.python
        if p.name in allowed and p.file.sha256 not in allowed[p.name]
    ]
    if wrong:
        raise ResolveError(
            f"files on the index do not match the imported hashes: {', '.join(wrong)}",
            hint="use the index that the file was made with, or import it without hashes",
        )
