"""Cut-off dates for build requirements of old releases."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from reprobuild.resolve.build_cutoff_date import own_day

pytest_plugins = ["support.family"]


@pytest.mark.parametrize(
    ("uploaded", "python", "day"),
    [
        (datetime(2022, 6, 12, 9, tzinfo=UTC), "3.11", date(2023, 4, 24)),
        (datetime(2023, 11, 1, 9, tzinfo=UTC), "3.11", date(2023, 11, 1)),
        (datetime(2022, 6, 12, 9, tzinfo=UTC), "3.99", None),
        (None, "3.11", None),
    ],
)
def test_the_day_of_an_old_release(uploaded: datetime | None, python: str, day: date | None) -> None:
    assert own_day(uploaded, python) == day
