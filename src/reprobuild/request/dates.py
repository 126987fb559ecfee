"""Start and end of a day, in UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta


def start_of(day: date) -> datetime:
    """Return the first moment of a day, UTC."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def end_of(day: date) -> datetime:
    """Return the first moment after a day, UTC: what was published before it counts as of that day."""
    return start_of(day) + timedelta(days=1)
