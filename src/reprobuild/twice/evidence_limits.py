"""Limits of what a run's processes kept, which a program or a recording may have forged. Pure.

Nothing beyond them is ever measured, and a number beyond a float, a date beyond the year 9999 or a million
names would stop the comparison, or take all memory.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from ..request.json_reader import hold_values

MOST_NAMES = 1_000_000
"""Characters of all drawn names: each has hundreds of beginnings and ends, all of which are known."""
_LARGEST = 1e30
"""A number that was measured; time in nanoseconds since 1970 has 19 digits."""
_LATEST = 1e11
"""Seconds since 1970, in the year 5138."""
_DAY = 86400


def load_values(text: bytes) -> Any:
    """Parse JSON. Raises `ValueError`, `RecursionError`, also for more values than memory is for."""
    hold_values(text)
    return json.loads(text)


def measured(value: Any) -> float | str | None:
    """Return a measured number or the text of one; None: nobody measures such a number."""
    if isinstance(value, str):
        return value
    return float(value) if abs(value) < _LARGEST else None  # nor is NaN


def whole(value: Any, least: int, most: int) -> int:
    """Return a whole number within limits. Raises `ValueError`."""
    if type(value) is not int or not least <= value <= most:
        raise ValueError("a number is out of range")
    return value


def count(value: Any) -> int:
    """Return a number of values. Raises `ValueError`."""
    return whole(value, 0, 1 << 53)


def zone(value: Any) -> int:
    """Return what local time is ahead of UTC, in seconds. Raises `ValueError`."""
    return whole(value, -_DAY, _DAY)


def address_range(value: Any) -> tuple[int, int]:
    """Return the first address of a piece of memory, and the one behind it. Raises `ValueError`."""
    start, end = value
    return whole(start, 0, 1 << 64), whole(end, 0, 1 << 64)


def moment(value: Any) -> float:
    """Return a clock time, in seconds since 1970. Raises `ValueError`."""
    if type(value) not in (int, float) or not 0 <= value < _LATEST:
        raise ValueError("a time is out of range")
    return float(value)


def bounded_names(names: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Return drawn names up to `MOST_NAMES` characters: what is beyond counts as any other text."""
    found: dict[str, list[str]] = defaultdict(list)
    left = MOST_NAMES
    for kind, given in names.items():
        for name in given:
            left -= len(name) + 1
            if left < 0:
                return {kind: tuple(each) for kind, each in found.items()}
            found[kind].append(name)
    return {kind: tuple(each) for kind, each in found.items()}
