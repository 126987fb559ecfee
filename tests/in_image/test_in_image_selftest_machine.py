"""What a report says of the machine."""

from __future__ import annotations

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
