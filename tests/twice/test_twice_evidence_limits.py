"""What a run's processes kept, within limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reprobuild.twice import evidence_limits as limits

HUGE = 10**400
"""No float holds it, and JSON has it."""


@pytest.mark.parametrize("value", [float("nan"), float("inf"), HUGE, -HUGE, 1e200, -1e31])
def test_nobody_measures_such_a_number(value: float) -> None:
    assert limits.measured(value) is None


@pytest.mark.parametrize("value", [0, -0.5, 1.8e18, 2**63, "0.25", "x"])
def test_a_measured_number_or_its_text_stays(value: Any) -> None:
    assert limits.measured(value) == value


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (limits.zone, HUGE),
        (limits.zone, 86_401),
        (limits.zone, 0.0),
        (limits.zone, True),
        (limits.count, -1),
        (limits.count, HUGE),
        (limits.address_range, [0, HUGE]),
        (limits.address_range, [-1, 0]),
        (limits.address_range, [0]),
        (limits.moment, HUGE),
        (limits.moment, float("nan")),
        (limits.moment, -1),
        (limits.moment, 1e12),
        (limits.moment, "0"),
        (limits.load_values, b"[" + b"[]," * 10_000_000 + b"[]]"),
    ],
)
def test_what_is_out_of_range_is_refused(read: Callable[[Any], object], value: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 -- of any kind: who reads the file says which file it is
        read(value)


def test_names_beyond_the_limit_are_unknown() -> None:
    few = {"uuids": ("a", "b"), "ports": ("1",)}
    assert limits.bounded_names(few) == few
    many = limits.bounded_names({"uuids": [f"{number:099}" for number in range(20_000)], "ports": ["1"]})
    assert list(many) == ["uuids"]
    assert len(many["uuids"]) == 10_000
