"""What a GPU does in ways of its own; the checks themselves run on the stand-in (test_gpu_standin.py)."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

import reprobuild.in_image.selftest.command_line  # noqa: F401 -- the checks are registered
from reprobuild.in_image.selftest import kernels


@pytest.mark.parametrize("program", ["import time; time.sleep(600)", "raise SystemExit(3)"])
def test_a_process_that_does_not_load_the_gpu_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr(kernels, "BUSY", program)
    monkeypatch.setattr(kernels, "BUSY_SECONDS", 1)
    with pytest.raises(RuntimeError, match="ended, or did not start in 1 s"), kernels.busy_gpu():
        pytest.fail("it loads nothing")


def test_the_process_that_loads_the_gpu_ends_with_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "BUSY", "print('busy', flush=True)\nwhile True: pass")
    with kernels.busy_gpu():
        pass  # it waits for the end of the process


def test_the_process_that_loads_a_gpu_computes_there(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    class Endless:
        def __matmul__(self, _: object) -> object:
            raise EOFError

    def ones(*shape: int, device: str) -> Endless:
        made.append((shape, device))
        return Endless()

    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(ones=ones))
    with pytest.raises(EOFError):
        exec(kernels.BUSY, {})
    assert made == [((2048, 2048), "cuda")]
