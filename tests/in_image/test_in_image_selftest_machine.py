"""What a report says of the machine."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest

import reprobuild.in_image.selftest.command_line  # noqa: F401 -- the checks are registered
from reprobuild.in_image.selftest import machine


def test_the_kernels_of_torch_2_0_are_known_by_its_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    old = SimpleNamespace(
        backends=SimpleNamespace(),
        __config__=SimpleNamespace(show=lambda: "PyTorch built with:\n  - CPU capability usage: AVX2\n"),
    )
    monkeypatch.setattr(machine, "torch", old)
    assert machine.cpu_capability() == "AVX2"


def test_a_gpu_that_is_not_seen_is_explained_in_torch_s_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch warns of a driver that is too old or broken, and says nothing of GPUs that are hidden."""
    old = "CUDA initialization: The NVIDIA driver on your system is too old (found version 11040)."

    def too_old() -> bool:
        warnings.warn(f"{old} (Triggered internally at CUDAFunctions.cpp:108.)", UserWarning, stacklevel=2)
        return False

    cuda = SimpleNamespace(is_available=too_old)
    monkeypatch.setattr(machine, "torch", SimpleNamespace(cuda=cuda, version=SimpleNamespace(cuda="12.1")))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert machine.gpu_missing() == old
    cuda.is_available = bool
    assert machine.gpu_missing() == machine.NOT_SEEN
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    assert machine.gpu_missing() == f"{machine.NOT_SEEN} (CUDA_VISIBLE_DEVICES is '7')"
    cuda.is_available = lambda: True
    assert machine.gpu_missing() == ""


class Told:
    """What NVIDIA's library says of two GPUs."""

    def driver(self) -> str:
        return "581.80"

    def settings(self, bus: str) -> dict[str, str]:
        return {"ecc": f"of {bus}"}


def test_the_driver_is_known_without_its_module_and_every_gpu_is_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in WSL 2, where there is no /sys/module/nvidia."""
    cards = [
        SimpleNamespace(name=name, major=9, minor=0, multi_processor_count=132, total_memory=1)
        for name in ("H100", "H200")
    ]
    cuda = SimpleNamespace(
        device_count=lambda: len(cards),
        get_device_properties=cards.__getitem__,
        nccl=SimpleNamespace(version=lambda: (2, 28, 9)),
    )
    monkeypatch.setattr(machine, "torch", SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(machine, "Management", Told)
    monkeypatch.setattr(machine, "bus_of", str)
    monkeypatch.setattr(machine, "Path", lambda _: tmp_path / "version")
    found = machine.gpu_scope()
    assert (found["driver"], found["nccl"], found["name"], found["ecc"]) == (
        "581.80",
        "2.28.9",
        "H100",
        "of 0",
    )
    assert [each in found["devices"] for each in ("name H100", "ecc of 0", "; name H200", "ecc of 1")] == [
        True
    ] * 4
    (tmp_path / "version").write_text("580.159.04\n")
    assert machine.gpu_scope()["driver"] == "580.159.04"
