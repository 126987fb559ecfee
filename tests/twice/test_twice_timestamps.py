"""Times within a run."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from reprobuild.twice.timestamps import MOMENT, in_run


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
        ("26 Nov 2026 01:52:47", True),
        ("26 Nov 2026 01:53:47", False),
        ("26 November 2026, 01:52:47", True),
        ("26-Nov-2026 01:52:47", True),
        ("26 Nov 2026 03:52:47 +0200", True),
        ("26 Nov 2026 01:52:47 GMT", True),
        ("26 Nox 2026 01:52:47", False),
        ("261126015247", True),
        ("261126015347", False),
        ("269926015247", False),
        ("1.79565796725e+09", True),
        ("1.795657967e+09", True),
        ("1.795659967e+09", False),
        ("1.7956579672513628006e+09", True),
    ],
)
def test_a_time_of_day_is_one_of_the_run(text: str, inside: bool) -> None:
    began = 1795657966.0  # 2026-11-26 01:52:46 UTC
    assert in_run(text, began, began + 3, (0,)) == inside


def test_a_date_of_utc_is_so_in_any_zone() -> None:
    began = 1795657966.0  # 2026-11-26 01:52:46 UTC
    assert in_run("26 Nov 2026 01:52:47 UTC", began, began + 3, (7200,))
    assert in_run("26 Nov 2026 03:52:47", began, began + 3, (7200,))


@pytest.mark.parametrize(
    "text",
    [
        "2031_01_31_12_00_01",
        "2031_1_31_12_00_01",
        "2031.01.31 12:00:01",
        "2031/01/31 12:00:01",
        "2031-01-31-120001",
        "2031-01-31+12-00-01+02",
        "2031-01-31:12:00:01",
        "31/Jan/2031:12:00:01 +0000",
        "31/Jan/2031:14:00:01 +0200",
        "D:20310131120001Z",
        "D:20310131140001+02'00'",
        "datetime.datetime(2031, 1, 31, 12, 0, 1",
        "datetime.datetime(2031, 1, 31, 12, 0, 1, 48569",
        "12-00-01",
        "2462898.0000174",
        "2.46289800001736119390e+06",
    ],
)
def test_a_date_in_other_forms_is_of_the_run_alone(text: str) -> None:
    noon = datetime(2031, 1, 31, 12, tzinfo=UTC).timestamp()
    assert re.fullmatch(MOMENT, text)
    assert in_run(text, noon, noon + 3, [0])
    assert not in_run(text, noon + 60, noon + 63, [0])


def test_a_colon_may_stand_behind_a_date() -> None:
    found = re.match(MOMENT, "2031-01-31 12:00:01.123456: loss")
    assert found is not None
    assert found[0] == "2031-01-31 12:00:01.123456"


def test_a_time_of_utc_is_not_the_zone_s() -> None:
    noon = datetime(2031, 1, 31, 12, tzinfo=UTC).timestamp()
    assert in_run("2031-01-31 13:00:01", noon, noon + 3, [3600])
    assert not in_run("2031-01-31 13:00:01Z", noon, noon + 3, [3600])
    assert in_run("2031-01-31 12:00:01Z", noon, noon + 3, [3600])
