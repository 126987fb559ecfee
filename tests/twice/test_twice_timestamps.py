"""Times within a run."""

from __future__ import annotations

import pytest

from reprobuild.twice.timestamps import in_run


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("2026-11-26 01:52:47,286", True),
        ("2026-11-26T01:52:47Z", True),
        ("2026-11-26T03:52:47+02:00", True),
        ("20261126-015247", True),
        ("Nov26_01-52-47", True),
        ("Nov 26 01:52:47 2026", True),
        ("Nov 26 01:52:47.123456 2026", True),
        ("Nov 26 01:52:47 AM 2026", True),
        ("Nov 26 01:52:47.123 PM 2026", False),
        ("Nov 26 01:52:47 UTC 2026", True),
        ("Nov 26 01:52:47 2025", False),
        ("11/26/26 01:52:47 AM", True),
        ("01:52:47 AM", True),
        ("01:52:47 PM", False),
        ("1795657967.25", True),
        ("1795657967250", True),
        ("1795658967", False),
        ("2026-11-26 01:53:47", False),
        ("12:34", False),
    ],
)
def test_a_time_of_day_is_one_of_the_run(text: str, inside: bool) -> None:
    began = 1795657966.0  # 2026-11-26 01:52:46 UTC
    assert in_run(text, began, began + 3, (0,)) == inside
