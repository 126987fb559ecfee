"""What NVIDIA's management library says of a GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import reprobuild.in_image.selftest.command_line  # noqa: F401 -- the checks are registered
from reprobuild.in_image.selftest import nvml


class FakeLibrary:
    """Answers as NVML does: a status, and what was asked for in the last argument."""

    def __init__(self, **answers: int | tuple[int, int]) -> None:
        self.answers = answers

    def driver(self, text: Any, _: Any) -> int:
        text.value = b"580.159.04"
        return 0

    def __getattr__(self, name: str) -> Callable[..., int]:
        if name == "nvmlSystemGetDriverVersion":
            return self.driver
        if name == "nvmlDeviceGetHandleByPciBusId_v2":
            return lambda bus, _: int(bus != b"0000:00:06.0")
        if name not in self.answers:
            raise AttributeError(name)
        given = self.answers[name]
        status, value = given if isinstance(given, tuple) else (0, given)

        def answer(*arguments: Any) -> int:
            place = next(each for each in arguments if hasattr(each, "_obj"))
            place._obj.value = value
            return status

        return answer


def test_what_the_gpu_is_set_to_is_told_and_unknown_is_null() -> None:
    management = nvml.Management()
    management.library = FakeLibrary(
        nvmlDeviceGetEccMode=1,
        nvmlDeviceGetMigMode=(3, 0),
        nvmlDeviceGetComputeMode=3,
        nvmlDeviceGetMaxClockInfo=1980,
        nvmlDeviceGetEnforcedPowerLimit=(999, 0),
    )
    assert management.driver() == "580.159.04"
    assert management.settings("0000:00:06.0") == {
        "ecc": "on",
        "mig": "not supported",
        "compute_mode": "exclusive process",
        "max_sm_mhz": 1980,
        "power_limit_mw": None,
    }
    assert set(management.settings("0000:00:07.0").values()) == {None}
    management.library = None
    assert (management.driver(), set(management.settings("0000:00:06.0").values())) == (None, {None})


def test_mps_is_told_by_its_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    assert nvml.shared_by_mps() == "off"
    (tmp_path / "control").touch()
    monkeypatch.setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "25")
    assert nvml.shared_by_mps() == "on, 25 % of the threads"


def test_a_gpu_s_bus_is_asked_for_by_cuda_s_own_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def get(handle: Any, number: Any) -> int:
        handle._obj.value = 40 + number.value
        return int(number.value > 1)

    def bus(text: Any, _: int, handle: Any) -> int:
        text.value = f"0000:{handle.value}:00.0".encode()
        return 0

    cuda = SimpleNamespace(cuDeviceGet=get, cuDeviceGetPCIBusId=bus)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: cuda)
    assert [nvml.bus_of(number) for number in range(3)] == ["0000:40:00.0", "0000:41:00.0", ""]
