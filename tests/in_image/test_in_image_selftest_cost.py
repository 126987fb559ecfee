"""What determinism costs, measured in one run."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch_python import make_venv, program_of, run

import reprobuild.in_image.selftest.command_line  # noqa: F401 -- the checks are registered
from reprobuild.selftest.cost import CostReport


@pytest.mark.slow
@pytest.mark.torch
def test_costs_are_ratios_of_one_run(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "venv", torch=True)
    done = run(python, program_of(python), "--json", "--device", "cpu", "--cost")
    found = CostReport.parse(done.stdout.encode(), digest="")
    assert len(found.costs) > 15
    for cost in found.costs:
        assert cost.reason == "", cost
        assert cost.on
        assert cost.off
        assert cost.ratio
        assert abs(cost.ratio - cost.on / cost.off) < 1e-3
        assert cost.rounds >= 10
