"""Ports that a program makes of its process number, as ``29500 + os.getpid() % 1000``. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from .evidence import Evidence

_PORT = re.compile(
    r"(?:(?:\d{1,3}(?:\.\d{1,3}){3}|\blocalhost|\]):|\bport\b\W{0,3})(\d{4,5})(?!\d)", re.IGNORECASE
)
"""A number behind an address, or behind the word."""
_RANGES = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000)
"""How many ports a program may choose from."""
_LEAST, _MOST = 1024, 65535
_DIGITS = (4, 5)
_PROCESSES = "process numbers"


def port_of_processes(texts: tuple[str, str], lines: Sequence[str], sides: Sequence[Evidence]) -> str | None:
    """Return ``port`` for two numbers that stand where ports do and differ as their runs' process numbers do:
    by the rest of a division by one of a few round numbers. Else None.
    """
    if any(
        len(text) not in _DIGITS or text not in _ports_of(line)
        for text, line in zip(texts, lines, strict=True)
    ):
        return None
    one, other = (int(text) for text in texts)
    if not all(_LEAST <= port <= _MOST for port in (one, other)):
        return None
    numbers = [[int(each) for each in side.names.get(_PROCESSES, ())] for side in sides]
    made = any(
        one - a % many == other - b % many >= _LEAST - 1
        for a, b in zip(*numbers, strict=False)
        for many in _RANGES
    )
    return "port" if made else None


@lru_cache(maxsize=64)
def _ports_of(line: str) -> frozenset[str]:
    """Return the numbers of a line that stand where ports do: once for all its numbers."""
    return frozenset(_PORT.findall(line))
