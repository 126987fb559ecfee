"""Golden values: the numbers that one version of torch gives on every machine of an architecture."""

from __future__ import annotations

import json
import os
import platform
import re
from pathlib import Path

import pytest
from torch_python import FILES, image_environment, make_venv, program_of, run

import reprobuild.in_image.selftest.command_line  # noqa: F401 -- the checks are registered
from reprobuild.in_image.selftest.registry import CHECKS, GOLDEN
from reprobuild.selftest.report import SelfTestReport

FILE = FILES / "golden.json"
NAMES = [name for name, check in CHECKS.items() if GOLDEN in check.compares]
OTHER_KINDS = [
    {"OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"},
    {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_CBWR": "COMPATIBLE"},
    {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_CBWR": "SSE4_2"},
]
"""Settings that make one CPU compute as another kind of CPU would."""


def results(python: Path, **env: str) -> tuple[str, dict[str, dict[str, str]]]:
    """Return the release of torch, and the golden checks' results by name."""
    options = ["--json", "--device", "cpu", "--only", *NAMES]
    done = run(python, program_of(python), *options, env=image_environment(**env))
    report = SelfTestReport.parse(done.stdout.encode(), digest="")
    release = report.versions["torch"].partition("+")[0]
    return release, {check.name: dict(check.results) for check in report.checks if check.results}


def test_the_file_is_canonical_and_names_version_and_architecture() -> None:
    kept = json.loads(FILE.read_text())
    assert FILE.read_text() == dumped(kept)
    for place, checks in kept.items():
        assert re.fullmatch(r"torch \d+\.\d+\.\d+ on (x86_64|aarch64)", place)
        assert list(checks) == sorted(NAMES)
        assert all(re.fullmatch("[0-9a-f]{64}", found) for each in checks.values() for found in each.values())


def _lacking(reason: str) -> None:
    """Skip a test on a machine with another torch; CI has one that has golden values."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


def dumped(kept: object) -> str:
    return json.dumps(kept, indent=1, sort_keys=True) + "\n"


@pytest.mark.slow
@pytest.mark.torch
def test_this_torch_gives_the_golden_numbers_as_any_kind_of_cpu(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    python = make_venv(tmp_path / "venv", torch=True)
    release, found = results(python)
    place = f"torch {release} on {platform.machine()}"
    if request.config.getoption("--update-golden") or os.environ.get("UPDATE_GOLDEN") == "1":
        FILE.write_text(dumped({**json.loads(FILE.read_text()), place: found}))
    kept = json.loads(FILE.read_text())
    if place not in kept:
        _lacking(f"no golden values are kept for {place}; --update-golden adds them")
    assert sorted(found) == sorted(NAMES)
    for env in ({}, *OTHER_KINDS):
        assert results(python, **env)[1] == kept[place], env


@pytest.mark.slow
@pytest.mark.torch
def test_other_numbers_than_the_golden_ones_fail_by_name(tmp_path: Path) -> None:
    # Every process and both runs agree: only the kept values can tell.
    patch = """
import sys
if "--child" in sys.orig_argv:
    import torch
    real = torch.randperm
    torch.randperm = lambda *a, **k: real(*a, **k).flip(0)
"""
    files = {"zz_patch.pth": "import zz_patch", "zz_patch.py": patch}
    python = make_venv(tmp_path / "venv", torch=True, files=files)
    done = run(python, program_of(python), "--json", "--device", "cpu", "--only", *NAMES)
    report = SelfTestReport.parse(done.stdout.encode(), digest="")
    if any(check.status == "not-run" for check in report.checks):
        _lacking(report.checks[-1].reason)
    (failed,) = report.failed
    assert failed.name == "golden-streams"
    assert {line.what for line in failed.detail} == {"randperm", "DistributedSampler"}
