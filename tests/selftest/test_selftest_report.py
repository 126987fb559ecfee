"""The types of a report's fields: it comes from a stranger's program, or from a colleague's file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reprobuild.errors import SelfTestError
from reprobuild.selftest import report as module
from reprobuild.selftest.report import SelfTestReport
from support.reports import DIGEST, NOT_MEASURED, a_check, a_cost, a_report, costs, parse_cost


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


TESTED = {"tested": True, "reason": ""}
UNTESTED = {"tested": False, "reason": "asked for the CPU only"}
ONE_GPU = {"cpu": {}, "gpu": {"name": "Some GPU"}}
NO_GPU: dict[str, Any] = {"cpu": {}, "gpu": None}


@pytest.mark.parametrize(
    ("gpu", "scope", "check", "message"),
    [
        (UNTESTED, ONE_GPU, {"device": "cuda"}, "gpu.tested: false, but the report has results of a GPU"),
        (UNTESTED, NO_GPU, {"device": "cuda", "results": {}, "status": "passed"}, "gpu.tested: false, but"),
        (TESTED, NO_GPU, {"device": "cuda"}, "scope.gpu: missing, but the report says that a GPU was tested"),
        (TESTED, {"cpu": {}}, {"device": "cuda"}, "scope.gpu: missing, but"),
        (TESTED, NO_GPU, {}, "scope.gpu: missing, but"),
        (TESTED, ONE_GPU, {"device": "cuda"}, None),
        (TESTED, ONE_GPU, {}, "gpu.tested: true, but the report has no check of a GPU"),
        (TESTED, ONE_GPU, {"device": "cuda", "results": {}, "status": "not-run"}, None),
        (UNTESTED, NO_GPU, {"device": "cuda", "results": {}, "status": "not-run"}, None),
    ],
)
def test_a_report_that_contradicts_itself_about_its_gpu(
    gpu: dict[str, Any], scope: dict[str, Any], check: dict[str, Any], message: str | None
) -> None:
    """Who reads one, compares, signs or shows it, relies on either."""
    table = a_report(a_check(), a_check(**{"name": "matmul", **check}), gpu=gpu, scope=scope)
    if message is None:
        assert parse(table).gpu_tested is gpu["tested"]
        return
    for read in (parse, lambda table: SelfTestReport.parse_kept(json.dumps(table).encode())):
        with pytest.raises(SelfTestError, match=f"^self-test report.{message}") as caught:
            read(table)
        assert "run the self-test again" in caught.value.hint


def test_a_part_of_the_battery_may_have_no_check_of_a_gpu() -> None:
    assert parse(a_report(a_check(), mode="part", gpu=TESTED, scope=ONE_GPU)).gpu_tested


def test_a_report_of_costs_that_contradicts_itself_about_its_gpu() -> None:
    measured = a_cost(device="cuda")
    with pytest.raises(SelfTestError, match=r"gpu\.tested: false, but the report has results of a GPU"):
        parse_cost(costs(measured))
    assert parse_cost(costs({**NOT_MEASURED, "device": "cuda"})).gpu_tested is False
    assert parse_cost(costs(measured, gpu=TESTED, scope=ONE_GPU)).gpu_tested


def test_a_report_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST", 500)
    with pytest.raises(SelfTestError, match="more than 500 bytes"):
        parse(a_report())
