"""Constraints and overrides of a request, as uv gets them."""

from __future__ import annotations

from pathlib import Path

from reprobuild.resolve.uv_rules import write_rules
from support.resolving import request


def test_without_rules_uv_gets_none(tmp_path: Path) -> None:
    assert write_rules(request(), ["torch==2.4.1"], tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_the_override_torch_stands_for_the_torch_of_the_request(tmp_path: Path) -> None:
    rules = request(constraints=["a<2"], overrides=["b==1", "torch"])
    arguments = write_rules(rules, ["c", "torch==2.4.1"], tmp_path)
    assert arguments == ["--constraint", "request-constraint.txt", "--override", "request-override.txt"]
    assert (tmp_path / "request-constraint.txt").read_text() == "a<2\n"
    assert (tmp_path / "request-override.txt").read_text().splitlines() == ["b==1", "torch==2.4.1"]
