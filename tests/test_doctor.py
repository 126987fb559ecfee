"""What a machine is found to have, with a stand-in for nvidia-smi that prints what the real one does."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reprobuild import doctor
from reprobuild.doctor import Driver, examine, too_old
from reprobuild.engines.gpu import GpuAccess
from reprobuild.home import Home
from test_lockfile import LOCK

if TYPE_CHECKING:
    from support.commands import Call

pytest_plugins = ["support.commands"]

SMI = """#!/bin/sh
case "$*" in
*query-gpu*) echo "NVIDIA A100-SXM4-40GB, 8.0"; echo "NVIDIA A100-SXM4-40GB, 8.0";;
*) echo "| NVIDIA-SMI 550.54.14    Driver Version: 550.54.14    CUDA Version: CUDA |";;
esac
"""


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A driver that knows CUDA 12.4, and a GPU that can be handed in."""
    program = tmp_path / "bin/nvidia-smi"
    program.parent.mkdir()
    program.write_text(SMI.replace("CUDA |", "12.4 |"))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(doctor, "gpu_access", lambda: GpuAccess(devices=()))
    return program


def test_the_driver_says_what_it_is(smi: Path) -> None:
    a100 = ("NVIDIA A100-SXM4-40GB", "8.0")
    assert doctor.driver() == Driver("550.54.14", "12.4", (a100, a100))


@pytest.mark.parametrize(
    ("text", "says"), [("#!/bin/sh\nexit 9\n", "exited with 9"), ("#!/bin/sh\n", "names no driver")]
)
def test_a_driver_that_is_broken(smi: Path, text: str, says: str) -> None:
    smi.write_text(text)
    found = doctor.driver()
    assert isinstance(found, str)
    assert says in found


@pytest.mark.parametrize(
    ("cuda", "old"), [("12.1", False), ("12.8", False), ("11.8", False), ("13.0", True), ("cpu", False)]
)
def test_a_driver_runs_its_own_major_version_and_those_before(cuda: str, old: bool) -> None:
    lock = replace(LOCK, request=replace(LOCK.request, cuda=cuda))
    assert (too_old(Driver("550.54.14", "12.4", ()), lock) is not None) == old


def test_a_lock_needs_disk_and_a_driver(smi: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = replace(LOCK, request=replace(LOCK.request, cuda="13.0"))
    monkeypatch.setattr(doctor, "free_bytes", lambda _: 10**9)
    found = {each.name: each for each in examine(lock, Home(tmp_path))}
    assert found["disk"].good is False
    assert "are needed" in found["disk"].text
    assert found["driver"].good is False
    assert found["driver"].text.startswith("driver 550.54.14 knows CUDA up to 12.4")
    monkeypatch.setattr(doctor, "free_bytes", lambda _: 10**13)
    found = {each.name: each for each in examine(LOCK, Home(tmp_path))}
    assert found["disk"].good
    assert found["driver"].good
    assert "compute capability 8.0" in found["GPU"].text


def test_what_is_missing_is_the_exit_status(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere.pem")
    said = call("doctor")
    assert said.status == 7
    assert "certificates  BAD: REQUESTS_CA_BUNDLE names /nowhere.pem" in said.out
    assert "this machine lacks something: " in said.err
    assert call("doctor", "envs/none.toml").status == 3
