"""A name is given by a passing report of that very image, and by nothing else."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reprobuild
from reprobuild.engines.tag import tag
from reprobuild.errors import SelfTestError
from reprobuild.selftest.report import SelfTestReport
from support.reports import DIGEST, FAILED, a_check, a_report

NAME = "team/torch:1"
STATUSES = ["passed", "failed", "inconclusive", "not-run"]


class Names:
    """What was named."""

    def __init__(self) -> None:
        self.given: list[tuple[str, str]] = []

    def name(self, digest: str, name: str) -> None:
        self.given.append((digest, name))


def report(*checks: object, digest: str = DIGEST) -> SelfTestReport:
    return SelfTestReport.parse(json.dumps(a_report(*checks)).encode(), digest=digest)  # type: ignore[arg-type]


def test_a_passing_report_gives_the_name() -> None:
    names = Names()
    tag(names, DIGEST, NAME, report())
    assert names.given == [(DIGEST, NAME)]


def test_a_failing_report_gives_none_and_says_why() -> None:
    names = Names()
    with pytest.raises(SelfTestError) as caught:
        tag(names, DIGEST, NAME, report(a_check(name="bmm"), FAILED))
    assert names.given == []
    assert caught.value.message == (
        f"the self-test failed (conv2d), so {NAME} is not set:\nconv2d: two processes differ\n"
        f"  output: expected {'c' * 64}, got {'d' * 64}"
    )
    assert f"`reprobuild run {DIGEST[:19]}`" in caught.value.hint


def test_a_report_of_the_controls_alone_gives_none() -> None:
    names = Names()
    with pytest.raises(SelfTestError, match="--prove"):
        tag(names, DIGEST, NAME, replace(report(), mode="prove"))
    assert names.given == []


def test_a_report_of_some_checks_gives_none() -> None:
    names = Names()
    with pytest.raises(SelfTestError, match="some checks only"):
        tag(names, DIGEST, NAME, replace(report(), mode="part"))
    assert names.given == []


def test_the_report_of_another_image_gives_none() -> None:
    names, other = Names(), "sha256:" + "e" * 64
    with pytest.raises(SelfTestError, match=f"the report is of {other}, not of {DIGEST}"):
        tag(names, DIGEST, NAME, report(digest=other))
    assert names.given == []


@given(st.lists(st.sampled_from(STATUSES), min_size=1, max_size=5), st.sampled_from(["cpu", "cuda"]))
def test_one_failed_check_among_any_others_is_enough(statuses: list[str], device: str) -> None:
    if not {"passed", "failed"} & set(statuses):
        return  # not a valid report: selftest/test_selftest_report.py
    names = Names()
    checks = (a_check(name=f"c{n}", status=s, device=device, reason="r") for n, s in enumerate(statuses))
    found = report(*checks)
    if "failed" in statuses:
        with pytest.raises(SelfTestError):
            tag(names, DIGEST, NAME, found)
    else:
        tag(names, DIGEST, NAME, found)
    assert bool(names.given) == ("failed" not in statuses)


def test_no_other_module_names_an_image() -> None:
    """A call of a method ``name`` with two arguments; transfer.py takes no image that has no name yet."""
    package = Path(reprobuild.__file__).parent
    callers = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "name"
        and len(node.args) + len(node.keywords) == 2
    }
    assert callers == {"engines/tag.py", "engines/transfer.py"}
