"""What determinism costs: the report is read in full or refused by place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from test_selftest_run import DIGEST

from reprobuild.errors import SelfTestError
from reprobuild.selftest.cost import CostReport
from reprobuild.selftest.report import SCHEMA


def a_cost(**changes: Any) -> dict[str, Any]:
    return {
        "name": "index_put",
        "device": "cpu",
        "on": 0.004,
        "off": 0.002,
        "ratio": 2.0,
        "rounds": 70,
        "reason": "",
        **changes,
    }


NOT = a_cost(name="sort", on=None, off=None, ratio=None, rounds=0, reason="RuntimeError: no")


def costs(*found: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "mode": "cost",
        "versions": {"torch": "2.4.1+cu121"},
        "scope": {"cpu": {}, "gpu": None},
        "gpu": {"tested": False, "reason": "none"},
        "costs": list(found) or [a_cost(), NOT],
        "seconds": 9.5,
        **changes,
    }


def parse(table: object) -> CostReport:
    return CostReport.parse(json.dumps(table).encode(), digest=DIGEST)


def test_a_report_keeps_all_that_it_was_read_from() -> None:
    again = json.loads(json.dumps(parse(costs()).to_dict()))
    assert again.pop("image") == DIGEST
    assert again == costs()


@pytest.mark.parametrize(
    ("table", "place"),
    [
        ([], "not a table"),
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
        parse(table)
    assert place in caught.value.message
