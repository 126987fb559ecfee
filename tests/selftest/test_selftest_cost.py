"""What determinism costs: the report is read in full or refused by place."""

from __future__ import annotations

import json

import pytest

from reprobuild.errors import SelfTestError
from support.reports import DIGEST, a_cost, costs, parse_cost


def test_a_report_keeps_all_that_it_was_read_from() -> None:
    again = json.loads(json.dumps(parse_cost(costs()).to_dict()))
    assert again.pop("image") == DIGEST
    assert again == costs()


@pytest.mark.parametrize(
    ("table", "place"),
    [
        ([], "not an object"),
        (costs(mode="battery"), "report.mode: 'battery'"),
        (costs(extra=1), "report.extra: unknown key"),
        (costs(a_cost(ratio="2")), "report.costs[0].ratio"),
        (costs(a_cost(), a_cost(ratio=None)), "report.costs[1]: a ratio or a reason"),
        (costs(a_cost(reason="why")), "report.costs[0]: a ratio or a reason"),
        (costs(schema=1), "schema is 1"),
    ],
)
def test_a_report_that_is_not_whole_is_refused_by_place(table: object, place: str) -> None:
    with pytest.raises(SelfTestError) as caught:
        parse_cost(table)
    assert place in caught.value.message
