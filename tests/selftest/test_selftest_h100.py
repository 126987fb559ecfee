"""Trimmed reports of a real H100 (torch 2.11, CUDA 13.0, driver 580.159.04), and what reads reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import reprobuild.in_image.selftest.command_line  # noqa: F401 -- the checks are registered
from reprobuild.in_image.selftest.registry import CHECKS
from reprobuild.selftest.agreement import compare
from reprobuild.selftest.cost import CostReport
from reprobuild.selftest.fleet import Machine, fleet
from reprobuild.selftest.pages import cost_plot, fleet_page
from reprobuild.selftest.report import SelfTestReport
from reprobuild.selftest.summary import summary
from support.reports import fingerprint

FOLDER = Path(__file__).parents[1] / "golden/gpu"


def the_report(which: str, /, **gpu: object) -> SelfTestReport:
    table: dict[str, Any] = json.loads((FOLDER / f"h100-{which}.json").read_bytes())
    table["scope"]["gpu"] |= gpu
    for check in table["checks"]:
        check["fingerprint"] = fingerprint(check["results"])  # of those that trimming left
    return SelfTestReport.parse(json.dumps(table).encode(), digest="sha256:" + "0" * 64)


def test_the_battery_passed_and_its_summary_names_the_gpu() -> None:
    found = the_report("battery")
    assert found.passed
    assert found.gpu_tested
    text = dict(summary(found, power=True))["GPU"]
    assert text.startswith("tested on NVIDIA H100 80GB HBM3, driver 580.159.04: ")
    notes = {(check.name, check.device): check.notes for check in found.checks}
    assert "torch chooses FLASH_ATTENTION" in notes["attention-long", "cuda"]
    assert "CUDNN_ATTENTION: not available here" in notes["attention", "cuda"]
    assert "cumsum: documented: raises; here it repeats" in notes["raises", "cuda"]


def test_every_control_saw_the_race_that_it_is_there_for() -> None:
    found = the_report("prove")
    assert (found.mode, found.verdict) == ("prove", "passed")
    seen = {check.name for check in found.checks if check.device == "cuda"}
    assert seen == {name for name, c in CHECKS.items() if c.part == "prove" and "cuda" in c.devices}


def test_a_report_agrees_with_itself_and_not_with_another_kind() -> None:
    """Each fact that the driver told about this GPU is part of its kind."""
    found = the_report("battery")
    assert {each.state for each in compare(found, found)} == {"equal"}
    gpu = found.scope["gpu"]
    told = {"ecc": "on", "mig": "off", "mps": "off", "max_sm_mhz": 1980, "power_limit_mw": 700_000}
    assert {key: gpu[key] for key in told} == told
    for key in told:
        states = {e.state for e in compare(found, the_report("battery", **{key: 1})) if e.device == "cuda"}
        assert states == {"not comparable"}, key
    for key in ("driver", "name", "sm_count"):
        unknown = the_report("battery", **{key: None})
        states = {each.state for each in compare(unknown, unknown) if each.device == "cuda"}
        assert states == {"not comparable"}, key


@pytest.mark.parametrize(("other", "kinds"), [({}, 1), ({"power_limit_mw": 500_000}, 2)])
def test_the_page_of_a_fleet_shows_it(other: dict[str, object], kinds: int) -> None:
    machines = [Machine(name="one", report=the_report("battery"))]
    machines.append(Machine(name="two", report=the_report("battery", **other)))
    found = fleet(machines)
    assert not found.deviations
    rows = [row for row in found.rows if row.device == "cuda"]
    states = {cell.state for row in rows for cell in row.cells}
    assert states == ({"agrees"} if kinds == 1 else {"alone"})
    assert b"NVIDIA H100 80GB HBM3" in fleet_page(found)


def test_the_costs_are_drawn() -> None:
    costs = CostReport.parse((FOLDER / "h100-cost.json").read_bytes(), digest="")
    assert {cost.name: cost.ratio for cost in costs.costs}["scatter_add"] == 9.806
    assert b"scatter_add" in cost_plot(costs)


def test_a_full_run_names_what_it_could_not_show() -> None:
    found = the_report("full")
    assert (found.mode, found.verdict) == ("full", "passed")
    ran = {check.name: check.status for check in found.checks}
    assert ran.pop("sums-nccl") == "not-run"  # one GPU
    assert ran.pop("cudnn-benchmark") == "inconclusive"
    assert set(ran.values()) == {"passed"}
    assert (
        "cudnn-benchmark (cuda): no convolution had other bits" in dict(summary(found, power=True))["unsure"]
    )


def test_another_machine_and_mps_gave_the_same_bits_and_mps_is_another_kind() -> None:
    """The battery ran a day later on another machine, with MPS, whose bits are not promised to agree."""
    first = {(check.name, check.device): check.results for check in the_report("battery").checks}
    found = the_report("mps")
    assert found.scope["gpu"]["mps"] == "on"
    assert {(c.name, c.device): c.results for c in found.checks}.items() <= first.items()
    states = {each.state for each in compare(the_report("battery"), found) if each.device == "cuda"}
    assert states == {"not comparable"}
