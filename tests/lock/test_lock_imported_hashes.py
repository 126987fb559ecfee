"""Hashes that an imported file names, against a lock."""

from __future__ import annotations

import pytest

from reprobuild.errors import ResolveError
from reprobuild.lock.imported_hashes import check_hashes
from support.locks import LOCK

FIRST = LOCK.python[0]


def test_other_bytes_are_refused_and_named() -> None:
    check_hashes(LOCK, {})
    check_hashes(LOCK, {FIRST.name: frozenset({FIRST.file.sha256, "0" * 64}), "no-such": frozenset()})
    with pytest.raises(ResolveError, match=f"{FIRST.file.filename} .sha256 {FIRST.file.sha256[:12]}"):
        check_hashes(LOCK, {FIRST.name: frozenset({"0" * 64})})
