"""Properties that are tried a little in the quick stage, and for long in the slow one."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

QUICK, LONG = 60, int(os.environ.get("REPROBUILD_TEST_EXAMPLES", "1000"))
"""Examples; a night can go to many more than CI."""

Test = Callable[..., None]


def quickly(examples: int = QUICK, /, **strategies: Any) -> Callable[[Test], Test]:
    """Return a decorator that tries a test with a few drawn arguments."""
    return lambda test: _tried(test, examples, strategies)


def for_long(examples: int = LONG, /, **strategies: Any) -> Callable[[Test], Test]:
    """Return a decorator that makes it a test of the slow stage, tried with many."""

    def decorate(test: Test) -> Test:
        marked: Test = pytest.mark.slow(_tried(test, examples, strategies))
        return marked

    return decorate


def _tried(test: Test, examples: int, strategies: dict[str, Any]) -> Test:
    bounds = settings(
        max_examples=examples, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
    )
    made: Test = bounds(given(**strategies)(test))
    return made
