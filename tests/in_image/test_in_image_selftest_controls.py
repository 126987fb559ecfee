"""Controls, which must see nondeterminism."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch_python import make_venv

import reprobuild.in_image.selftest.command_line  # noqa: F401 -- the checks are registered
from reprobuild.in_image.selftest.registry import (
    CHECKS,
)
from support.selftest_program import CORES, report


@pytest.mark.slow
@pytest.mark.torch
def test_prove_passes_only_where_each_control_saw_nondeterminism(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "venv", torch=True)
    found = report(python, "--device", "cpu", "--prove")
    assert found.mode == "prove"
    controls = {check.name: check.status for check in found.checks if check.name != "imports"}
    assert set(controls) == {n for n, c in CHECKS.items() if c.part == "prove" and "cpu" in c.devices}
    racing = {"prove-index-put", "prove-indexing"}  # one core has nothing to race with, and then says so
    unsure = {name for name, status in controls.items() if status != "passed"}
    assert unsure == (set() if CORES > 1 else racing)
    assert found.verdict == ("passed" if CORES > 1 else "inconclusive")


@pytest.mark.slow
@pytest.mark.torch
def test_a_control_that_saw_nothing_is_never_passed(tmp_path: Path) -> None:
    steady = (
        "import sys\nif '--child' in sys.orig_argv:\n    import random\n    random.random = lambda: 0.5\n"
    )
    files = {"zz_steady.pth": "import zz_steady", "zz_steady.py": steady}
    python = make_venv(tmp_path / "venv", torch=True, files=files)
    found = report(python, "--prove", "--only", "prove-python-seed", "prove-numpy-seed")
    assert found.verdict == "inconclusive"
    assert not found.passed
    (unsure,) = [check for check in found.checks if check.status == "inconclusive"]
    assert unsure.name == "prove-python-seed"
    assert unsure.reason.startswith("50 runs with determinism off did not differ")
