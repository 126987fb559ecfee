"""Cut-off date for an old release's build requirements, where today's cannot build it."""

from __future__ import annotations

from datetime import date, datetime

_USUAL = {
    "3.8": date(2020, 4, 14),
    "3.9": date(2021, 4, 5),
    "3.10": date(2022, 4, 4),
    "3.11": date(2023, 4, 24),
    "3.12": date(2024, 4, 2),
    "3.13": date(2025, 4, 7),
    "3.14": date(2026, 4, 7),
}
"""Half a year after each Python came out (https://devguide.python.org/versions/): by then most packages had
wheels for it."""


def own_day(uploaded: datetime | None, python: str) -> date | None:
    """Return the day whose build requirements an old release was made for; None where that is not known.

    It is that of the release itself, or when its Python had become usual, if that was later.
    """
    if uploaded is None or python not in _USUAL:
        return None
    return max(uploaded.date(), _USUAL[python])
