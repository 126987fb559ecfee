"""Waiting for what is to happen, without a sleep of a set length."""

from __future__ import annotations

import time
from collections.abc import Callable


def settles(condition: Callable[[], bool], within: float) -> bool:
    """Whether a condition comes true in that many seconds."""
    deadline = time.monotonic() + within
    while not (true := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return true
