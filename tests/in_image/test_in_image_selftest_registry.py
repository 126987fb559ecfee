"""What each check says of itself."""

from __future__ import annotations

import reprobuild.in_image.selftest.command_line  # noqa: F401 -- the checks are registered
from reprobuild.in_image.selftest.registry import (
    ACROSS,
    CHECKS,
    CONTROL,
    GOLDEN,
    SETTING,
    WITHIN,
    in_order,
)


def test_every_check_says_its_order() -> None:
    orders = [check.order for check in in_order()]
    assert len(set(orders)) == len(orders)
    names = [check.name for check in in_order()]
    # The imports and the hook are what all others need; a seed is seen in the state of the start; a fork is
    # safe only while torch has started no threads.
    assert names[:5] == ["imports", "setting-hook", "setting-environment", "setting-seed", "ranks-gloo"]


def test_every_check_says_what_it_proves_and_how_it_compares() -> None:
    for check in CHECKS.values():
        assert check.proves
        assert "\n" not in check.proves
        assert check.compares
        assert {*check.compares} <= {SETTING, WITHIN, ACROSS, GOLDEN, CONTROL}
        assert {*check.devices} <= {"cpu", "cuda"}
