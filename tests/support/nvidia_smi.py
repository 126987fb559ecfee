"""A stand-in for nvidia-smi that prints what the real one does: a fixture.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from reprobuild.engines.cdi import GpuAccess
from reprobuild.host.sandbox import Bind, Device
from reprobuild.pipeline.preflight import doctor

SMI = """#!/bin/sh
case "$*" in
*query-gpu*) echo "NVIDIA A100-SXM4-40GB, 8.0"; echo "NVIDIA A100-SXM4-40GB, 8.0";;
*) echo "| NVIDIA-SMI 550.54.14    Driver Version: 550.54.14    CUDA Version: CUDA |";;
esac
"""


NODE = Device(path="/dev/nvidia0", source=Path("/dev/null"))
NODES = [NODE, *(replace(NODE, path=f"/dev/{name}") for name in ("nvidiactl", "nvidia-uvm"))]
LIBCUDA = Bind(source=Path("/etc/hostname"), destination="/usr/lib/libcuda.so.1")


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A driver that knows CUDA 12.4, and a GPU that can be handed in."""
    program = tmp_path / "bin/nvidia-smi"
    program.parent.mkdir()
    program.write_text(SMI.replace("CUDA |", "12.4 |"))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(doctor, "gpu_access", lambda: GpuAccess(devices=NODES, binds=[LIBCUDA]))
    return program
