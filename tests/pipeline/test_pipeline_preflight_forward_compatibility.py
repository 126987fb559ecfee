"""A libcuda that is newer than the driver (docs.nvidia.com/deploy/cuda-compatibility)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reprobuild.engines.cdi import GpuAccess
from reprobuild.host.sandbox import Bind
from reprobuild.pipeline.preflight import doctor
from reprobuild.pipeline.preflight.forward_compatibility import forward_compatibility, other_libcuda
from reprobuild.pipeline.preflight.image_needs import needs_of, needs_of_labels
from reprobuild.pipeline.preflight.nvidia_smi import Card, Driver
from support.locks import LOCK
from support.nvidia_smi import NODE, NODES

pytest_plugins = ["support.nvidia_smi"]

NEEDS = needs_of(LOCK)
A100 = (Card("NVIDIA A100-SXM4-40GB", "8.0"),)
GEFORCE = (Card("NVIDIA GeForce RTX 3090", "8.6"),)
OLD = Driver("470.182.03", "11.4", A100)


def passed_in(folder: Path, version: str) -> GpuAccess:
    library = folder / f"libcuda.so.{version}"
    library.write_text("")
    (folder / "libcuda.so.1").unlink(missing_ok=True)
    (folder / "libcuda.so.1").symlink_to(library)
    bind = Bind(source=folder / "libcuda.so.1", destination="/usr/local/nvidia/lib64/libcuda.so.1")
    return GpuAccess(devices=NODES, binds=[bind])


@pytest.mark.parametrize(
    ("version", "helps"),
    [("530.30.02", True), ("525.60.13", True), ("470.182.03", False), ("510.47.03", False)],
)
def test_a_newer_libcuda_of_the_machine_may_help(tmp_path: Path, version: str, helps: bool) -> None:
    """As with LD_LIBRARY_PATH=/usr/local/cuda/compat, where the package cuda-compat-12-1 is installed."""
    said = forward_compatibility(NEEDS, OLD, passed_in(tmp_path, version), A100)
    assert (said is not None) is helps
    if said:
        assert f"of driver {version} is passed in (forward compatibility): NVIDIA supports that on" in said


def test_it_is_never_for_a_geforce(tmp_path: Path) -> None:
    assert forward_compatibility(NEEDS, OLD, passed_in(tmp_path, "530.30.02"), GEFORCE) is None


def test_the_image_may_have_one_of_its_own() -> None:
    """NVIDIA's images of CUDA and of PyTorch have /usr/local/cuda/compat."""
    own = replace(NEEDS, own_libcuda=True)
    said = forward_compatibility(own, OLD, GpuAccess(devices=[NODE]), A100)
    assert said is not None
    assert said.startswith("the image may have a newer libcuda of its own (cuda-compat): ")
    assert forward_compatibility(NEEDS, OLD, GpuAccess(devices=[NODE]), A100) is None
    assert not needs_of_labels({}, "a:1").own_libcuda
    assert needs_of_labels(
        {"org.opencontainers.image.base.name": "registry.example/nvidia/cuda:12.1"}, "a:1"
    ).own_libcuda


def test_what_may_help_is_no_refusal_and_is_named(
    smi: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "driver", lambda: OLD)
    for version, good in (("470.182.03", False), ("530.30.02", None)):
        access = passed_in(tmp_path, version)
        monkeypatch.setattr(doctor, "gpu_access", lambda access=access: access)
        found = {each.name: each for each in doctor.examine_gpus(NEEDS)}["driver"]
        assert found.good is good
        assert found.text.startswith("driver 470.182.03 supports CUDA up to 11.4, but ")
        assert ("forward compatibility" in found.text) is (good is None)


@pytest.mark.parametrize(
    ("version", "gpus", "good"),
    [
        ("535.161.08", A100, True),
        ("525.60.13", A100, False),
        ("535.154.05", A100, False),
        ("550.54.14", A100, None),
        ("535.183.01", A100, None),
        ("550.54.14", GEFORCE, False),
        ("1.1", A100, True),  # WSL
    ],
)
def test_a_libcuda_of_another_driver(
    smi: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, gpus: Any, good: bool | None
) -> None:
    """CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803), and 804 where forward compatibility is not supported."""
    new = Driver("535.161.08", "12.2", gpus)
    access = passed_in(tmp_path, version)
    monkeypatch.setattr(doctor, "driver", lambda: new)
    monkeypatch.setattr(doctor, "gpu_access", lambda: access)
    found = {each.name: each for each in doctor.examine_gpus(NEEDS)}["driver"]
    assert found.good is good
    assert (
        f"of driver {version} is passed in, but the loaded driver is 535.161.08" in found.text
    ) is not good
    # A CDI file may name it by its version alone.
    (bind,) = access.binds
    plain = replace(bind, source=bind.source.resolve(), destination=f"/usr/lib/libcuda.so.{version}")
    assert (other_libcuda(new, replace(access, binds=[plain]), gpus) is None) is (good is True)
