"""The process in which checks run."""

from __future__ import annotations

import io
from typing import Any

import pytest

import reprobuild.in_image.selftest.command_line  # noqa: F401 -- the checks are registered
from reprobuild.in_image.selftest import child
from reprobuild.in_image.selftest.outcomes import Outcome


def test_no_gpu_is_looked_for_before_the_ranks_are_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that is forked after cuInit cannot use CUDA, and the step of an optimizer asks for it."""
    seen: list[str] = []

    def went(name: str, result: Any) -> Any:
        seen.append(name)
        return result

    monkeypatch.setattr(child, "fill_memory", lambda: None)
    monkeypatch.setattr(child, "gpu_missing", lambda: went("GPU", ""))
    monkeypatch.setattr(child, "facts", lambda reason: {"gpu": reason})
    monkeypatch.setattr(child, "execute", lambda check, _: went(check.name, Outcome("passed")))
    child.child(io.StringIO(), ["imports", "setting-hook", "ranks-gloo", "ranks-nccl", "matmul"], "auto")
    assert seen[:4] == ["imports", "setting-hook", "ranks-gloo", "GPU"]
    seen.clear()
    report = io.StringIO()
    child.child(report, ["imports", "ranks-gloo"], "auto")
    assert (seen[-1], '{"gpu": ""}' in report.getvalue()) == ("GPU", True)
