"""An index that has wheels for two platforms: fixtures.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

import pytest

from support.index import Index

ARM = "cp311-cp311-manylinux_2_17_aarch64"


BOTH = ("--platform", "linux/arm64", "--platform", "linux/amd64")


@pytest.fixture
def arm(family: Index, apt: None, monkeypatch: pytest.MonkeyPatch) -> Index:
    """The family, and as much of it as there is for arm64: no torch with CUDA."""
    for module in ("resolve.resolver", "pipeline.workspace", "pipeline.preflight.emulation"):
        monkeypatch.setattr(f"reprobuild.{module}.architecture", lambda: "amd64")
    family.add("torch", "2.4.1", tag=ARM, requires=["filelock"])
    for version in ("1.26.4", "2.1.0"):
        family.add("numpy", version, tag=ARM)
    return family


@pytest.fixture
def both(arm: Index) -> Index:
    """A torch with CUDA for arm64 too, older than the newest."""
    for file in [f for f in arm.files if f.name == f"torch-2.4.1-{ARM}.whl"]:
        arm.files.remove(file)
    need = ["nvidia-cuda-runtime-cu12==12.1.105", "filelock", "only-there"]
    arm.add("torch", "2.4.1", tag=ARM, requires=need)
    arm.add("nvidia-cuda-runtime-cu12", "12.1.105", tag="py3-none-manylinux2014_aarch64")
    arm.add("only-there", "1.0")
    return arm
