"""Runs of the self-test program, and reports of checks, for its tests.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from torch_python import program_of, run

import reprobuild.in_image.selftest.command_line  # noqa: F401 -- the checks are registered
from reprobuild.selftest.report import SelfTestReport
from reprobuild.selftest.run import EXIT


def failed(found: SelfTestReport) -> set[str]:
    return {check.name for check in found.failed}


def report(python: Path, *options: str, env: Mapping[str, str] | None = None) -> SelfTestReport:
    done = run(python, program_of(python), "--json", *options, env=env)
    parsed = SelfTestReport.parse(done.stdout.encode(), digest="sha256:" + "0" * 64)
    assert done.returncode == EXIT[parsed.verdict]
    return parsed


CORES = len(os.sched_getaffinity(0))
