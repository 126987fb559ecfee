"""What a lock needs of a driver and a GPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.lock.reader import parse_lock
from reprobuild.pipeline.preflight import doctor
from reprobuild.pipeline.preflight.doctor import examine_for
from reprobuild.pipeline.preflight.image_needs import needs_of, needs_of_labels
from reprobuild.render.image_config import image_config
from support.hosts import quiet_host
from support.locks import LOCK

pytest_plugins = ["support.commands", "support.nvidia_smi"]


@pytest.mark.parametrize(
    ("cuda", "old"), [("12.1", False), ("12.8", False), ("11.8", False), ("13.0", True), ("cpu", False)]
)
def test_a_driver_runs_its_own_major_version_and_those_before(cuda: str, old: bool) -> None:
    lock = replace(LOCK, request=replace(LOCK.request, cuda=cuda))
    assert (needs_of(lock).refusal_of_driver("550.54.14", "12.4") is not None) == old


def test_a_driver_older_than_its_cuda_needs() -> None:
    needs = needs_of(LOCK)
    assert needs.driver == "525.60.13"
    assert needs.refusal_of_driver("525.60.13", "12.0") is None
    assert needs.refusal_of_driver("525.9", "12.0") == (
        f"driver 525.9 supports CUDA up to 12.0, but {LOCK.request.name} is for CUDA 12.1, which needs "
        "driver 525.60.13 or newer"
    )


@pytest.mark.parametrize(
    ("capability", "listed", "runs"),
    [
        ("8.0", "sm_80", True),
        ("8.6", "sm_80", True),
        ("8.0", "sm_86", False),
        ("9.0", "sm_80 sm_86", False),
        ("9.0", "sm_80 compute_80", True),
        ("7.5", "sm_80 compute_80", False),
        ("12.0", "sm_50 sm_90", False),
        ("12.0", "sm_120", True),
        ("9.0", "sm_90a", True),
        ("10.0", "compute_90a", False),
        ("10.3", "sm_100f", True),
        ("10.3", "compute_100f", True),
        ("12.0", "compute_100f", False),
        ("12.0", "compute_100", True),
        ("8.7", "sm_80 sm_86 sm_90", False),  # Jetson Orin
        ("8.7", "sm_80 compute_80", True),
        ("8.7", "sm_87", True),
        ("8.9", "sm_87", False),
        ("7.2", "sm_70 sm_75", False),  # Jetson Xavier
        ("11.0", "sm_101", True),  # Jetson Thor, by two names
        ("11.0", "sm_100 sm_120", False),
        ("12.1", "sm_120", True),  # DGX Spark
        ("5.2", "", True),
    ],
)
def test_a_gpu_runs_the_code_that_is_for_it(capability: str, listed: str, runs: bool) -> None:
    needs = needs_of(replace(LOCK, gpu_targets=listed.split()))
    assert (needs.refusal_of_gpu("GPU", capability) is None) == runs
    for_cpu = replace(LOCK, request=replace(LOCK.request, cuda="cpu"), gpu_targets=["sm_10"])
    assert needs_of(for_cpu).refusal_of_gpu("GPU", capability) is None


def test_labels_say_what_the_lock_says() -> None:
    lock = replace(LOCK, gpu_targets=["sm_80", "compute_90"])
    labels = image_config(lock).labels
    assert labels["dev.reprobuild.architectures"] == "sm_80 compute_90"
    assert labels["dev.reprobuild.driver"] == "525.60.13"
    assert needs_of_labels(labels, lock.request.name) == needs_of(lock)
    assert parse_lock(lock.dump(), "again") == lock


def test_an_image_for_other_gpus(smi: Path, tmp_path: Path) -> None:
    needs = needs_of(replace(LOCK, gpu_targets=("sm_50", "sm_90")))
    found = {each.name: each for each in examine_for(needs, Host(Home(tmp_path), Console(quiet=True)))}
    assert found["needs"].text == ("CUDA 12.1; driver 525.60.13 or newer; PyTorch has code for sm_50, sm_90")
    assert "mmdebstrap" not in found
    assert found["GPU"].good is False
    assert found["GPU"].text == (
        "NVIDIA A100-SXM4-40GB has compute capability 8.0, but the PyTorch of "
        f"{LOCK.request.name} only has code for sm_50, sm_90"
    )
    assert found["driver"].good


def test_one_gpu_that_runs_it_is_enough(smi: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    smi.write_text(smi.read_text().replace('"; echo "NVIDIA A100-SXM4-40GB, 8.0"', '"; echo "Old, 5.0"'))
    found = {
        each.name: each
        for each in examine_for(needs_of(replace(LOCK, gpu_targets=("sm_80",))), quiet_host(Home(tmp_path)))
    }
    assert found["GPU"].good
    assert "; Old has compute capability 5.0" in found["GPU"].text


def test_a_gpu_that_does_not_tell_its_compute_capability(smi: Path) -> None:
    smi.write_text(smi.read_text().replace(", 8.0", ", [N/A]"))
    needs = replace(needs_of(LOCK), gpu_targets=("sm_90",))
    found = {each.name: each for each in doctor.examine_gpus(needs)}
    assert (found["GPU"].good, found["GPU"].text.count("(compute capability [N/A])")) == (None, 2)
