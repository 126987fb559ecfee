"""CDI files for tests: a fixture for their folder, and functions that write and read one.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from reprobuild.engines.cdi import KIND, GpuAccess
from reprobuild.engines.gpu import gpu_access

SPEC: dict[str, Any] = {
    "cdiVersion": "0.5.0",
    "kind": KIND,
    "containerEdits": {
        "env": ["NVIDIA_VISIBLE_DEVICES=void", "WITH=a=b"],
        "deviceNodes": [
            {"path": "/dev/nvidiactl"},
            {"path": "/dev/nvidia-uvm", "hostPath": "/dev/other-uvm"},
        ],
        "mounts": [
            {
                "hostPath": "/usr/lib/libcuda.so.550",
                "containerPath": "/usr/lib/libcuda.so.550",
                "options": ["ro", "nosuid", "nodev", "bind"],
            },
            {"hostPath": "/run/socket", "containerPath": "/run/socket", "options": ["rw", "bind"]},
        ],
        "hooks": [
            {
                "hookName": "createContainer",
                "path": "/usr/bin/nvidia-cdi-hook",
                "args": ["nvidia-cdi-hook", "update-ldcache", "--folder", "/usr/lib"],
                "env": ["DEBUG=0"],
            }
        ],
    },
    "devices": [
        {"name": "1", "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia1"}]}},
        {"name": "0", "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia0"}]}},
    ],
}
"""In the form of `nvidia-ctk cdi generate`."""

ALL = {"name": "all", "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia0"}, {"path": "/dev/nvidia1"}]}}


NODE = {"path": "/dev/nvidia0"}


def a_spec(version: str = "1.1.0", name: str = "0", common: Any = None, **edits: Any) -> dict[str, Any]:
    """A file with one device, which is a GPU unless the edits name other nodes."""
    device = {"name": name, "containerEdits": {"deviceNodes": [NODE], **edits}}
    return {"cdiVersion": version, "kind": KIND, "devices": [device], "containerEdits": common}


@pytest.fixture
def cdi(tmp_path: Path) -> Path:
    folder = tmp_path / "cdi"
    folder.mkdir()
    return folder


def found(folder: Path, spec: object = SPEC, name: str = "nvidia.yaml") -> GpuAccess:
    text = json.dumps(spec) if name.endswith(".json") else yaml.safe_dump(spec)
    (folder / name).write_text(text)
    access = gpu_access([folder], Path("/nowhere"))
    assert isinstance(access, GpuAccess)
    return access
