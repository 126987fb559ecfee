"""Every test is of one stage, and what is left out by default is named."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from conftest import SHARES, STAGES

TOP = Path(__file__).parents[1]


def test_every_test_for_real_has_one_stage(marks_of_all: Mapping[str, set[str]]) -> None:
    stages = {node: marks & set(STAGES) for node, marks in marks_of_all.items()}
    assert [node for node, found in stages.items() if len(found) > 1] == []
    bare = {node for node, marks in marks_of_all.items() if not stages[node] and marks & {"real", "torch"}}
    bare |= {node for node in stages if "/real/" in node and not stages[node]}
    assert bare == set()


@pytest.mark.slow
def test_what_is_left_out_by_default_is_named() -> None:
    argv = ["tests/test_envs.py", "tests/oci/test_oci_store.py::test_skopeo_reads_the_store", "-n", "1"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *argv]
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    done = subprocess.run(command, cwd=TOP, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "left out: 1 test of the stage engines; run them with: .venv/bin/pytest -m engines" in done.stdout


def test_modules_that_share_images_run_in_one_process() -> None:
    shared = {entry.partition("[")[0] for entries in SHARES.values() for entry in entries}
    plugin = "pytest_plugins = [" + '"support.shared"]'
    found = {path.stem for path in (TOP / "tests").rglob("test_*.py") if plugin in path.read_text()}
    assert found == shared
