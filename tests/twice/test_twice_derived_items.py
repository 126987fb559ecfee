"""What programs commonly compute from measured numbers."""

from __future__ import annotations

import math

from reprobuild.twice.derived_items import Item, spans, together

SITE = ("value", "train.py", 3, 0)
MOMENT = ("moment", "train.py", 5, 0)


def values(items: list[Item]) -> dict[str, float]:
    return {item.site[0]: float(item.value) for item in items}


def test_means_are_known_in_smaller_units_too() -> None:
    found = values(together([Item(SITE, 0.25 * at, at, 3 - at) for at in range(4)]))
    assert found["value mean"] == 0.375
    assert found["value mean in milliseconds"] == 375.0
    assert found["value most in microseconds"] == 750_000.0


def test_of_a_place_that_serves_several_each_has_its_own_sum() -> None:
    found = values(together([Item(SITE, 10.0**-at, at, 5 - at) for at in range(6)]))
    assert found["value sum of every 3 from 1"] == math.fsum((0.1, 0.0001))
    assert found["value most of every 2 from 1"] == 0.1


def test_a_log_counts_from_its_first_date() -> None:
    items = [Item(MOMENT, 1.7e9 + moment, at, 3 - at) for at, moment in enumerate((0.0, 0.5, 1.25, 4.0))]
    found = [*spans({MOMENT: items})]
    assert [item.value for item in found if item.site[0] == "span" and item.site[1].endswith("first")] == [
        1.25,
        4.0,
    ]
    assert 4.0 / 3 in {item.value for item in found if item.site[0] == "span mean"}


def test_one_date_lasts_no_time() -> None:
    assert not [*spans({MOMENT: [Item(MOMENT, 1.7e9, 0, 0)]})]
