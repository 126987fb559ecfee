"""Every test is of one stage, and what is left out by default is named."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from conftest import STAGES, may_have_tests_of, share_of

TOP = Path(__file__).parents[1]


def test_every_test_for_real_has_one_stage(marks_of_all: Mapping[str, set[str]]) -> None:
    stages = {node: marks & set(STAGES) for node, marks in marks_of_all.items()}
    assert [node for node, found in stages.items() if len(found) > 1] == []
    bare = {node for node, marks in marks_of_all.items() if not stages[node] and marks & {"real", "torch"}}
    bare |= {node for node in stages if "/real/" in node and not stages[node]}
    assert bare == set()


def test_no_module_with_a_test_of_a_stage_is_left_out_of_it(marks_of_all: Mapping[str, set[str]]) -> None:
    found = {(node.partition("::")[0], stage) for node, marks in marks_of_all.items() for stage in marks}
    wanted = [(module, stage) for module, stage in found if stage in STAGES]
    assert [each for each in wanted if not may_have_tests_of(TOP / each[0], frozenset([each[1]]))] == []
    assert not may_have_tests_of(TOP / "tests/test_envs.py", frozenset(STAGES))


@pytest.mark.slow
def test_what_is_left_out_by_default_is_named() -> None:
    argv = ["tests/test_envs.py", "tests/oci/test_oci_store.py::test_skopeo_reads_the_store", "-n", "1"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *argv]
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    done = subprocess.run(command, cwd=TOP, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "left out: 1 test of the stage engines; run them with: .venv/bin/pytest -m engines" in done.stdout


def test_tests_of_a_daemon_that_lasts_for_a_session_run_in_one_process() -> None:
    contract = "tests/engines/test_engines_contract.py"
    assert share_of(f"{contract}::test_a[docker-26.1]") == share_of(f"{contract}::test_b[docker-26.1-pip]")
    assert share_of(f"{contract}::test_a[docker-26.1]") == share_of(
        "tests/engines/test_engines_docker_client.py::test_c"
    )
    others = {
        share_of(f"{contract}::test_a[{engine}]") for engine in ("docker-20.10", "docker-26.1", "podman")
    }
    assert len(others) == 3
    programs = "tests/twice/test_twice_programs.py"
    assert share_of(f"{programs}::test_a[1]") == share_of(f"{programs}::test_a[2]")
    assert share_of(f"{programs}::test_a[1]") != share_of(f"{programs}::test_b[1]")
    assert share_of("tests/test_stages.py::test_a") != share_of("tests/test_envs.py::test_a[podman-less]")
