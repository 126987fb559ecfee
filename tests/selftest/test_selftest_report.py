"""The types of a report's fields: it comes from a stranger's program, or from a colleague's file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reprobuild.errors import SelfTestError
from reprobuild.selftest import report as module
from reprobuild.selftest.report import SelfTestReport
from support.reports import DIGEST, a_check, a_report


def parse(table: dict[str, Any]) -> SelfTestReport:
    return SelfTestReport.parse(json.dumps(table).encode(), digest=DIGEST)


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"scope": {"cpu": ["a", "list"], "gpu": None}}, "scope.cpu"),
        ({"scope": {"cpu": "text", "gpu": None}}, "scope.cpu"),
        ({"scope": {"cpu": None, "gpu": 5}}, "scope.gpu"),
        ({"scope": {"cpu": {"model": ["x"]}, "gpu": None}}, "scope.cpu.model"),
        ({"scope": {"cpu": {"threads": float("inf")}, "gpu": None}}, "scope.cpu.threads"),
        ({"scope": {"tpu": {}}}, "scope.tpu"),
        ({"versions": {"torch": {"a": 1}}}, "versions.torch"),
        ({"versions": []}, "versions"),
        ({"seconds": float("nan")}, "seconds"),
        ({"seconds": 10**400}, "seconds"),
        ({"peak_memory_bytes": 10**400}, "peak_memory_bytes"),
        ({"checks": [a_check(notes=[{}])]}, r"checks\[0\].notes\[0\]"),
        ({"checks": [a_check(compares=[None])]}, r"checks\[0\].compares\[0\]"),
        ({"checks": [a_check(calls=10**400)]}, r"checks\[0\].calls"),
        ({"checks": [a_check(rate="1")]}, r"checks\[0\].rate"),
        ({"checks": [a_check(values={"a": {"type": 1, "data": ""}})]}, r"checks\[0\].values.a.type"),
    ],
)
def test_a_field_of_another_type_is_refused(changes: dict[str, Any], place: str) -> None:
    with pytest.raises(SelfTestError, match=f"^self-test report.{place}: .{{1,120}}$"):
        parse(a_report(**changes))


def test_a_report_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST", 500)
    with pytest.raises(SelfTestError, match="more than 500 bytes"):
        parse(a_report())
