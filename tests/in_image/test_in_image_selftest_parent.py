"""The verdict that the parent process makes of what its child processes sent."""

from __future__ import annotations

from dataclasses import replace

import pytest

import reprobuild.in_image.selftest.command_line  # noqa: F401 -- the checks are registered
from reprobuild.in_image.selftest.outcomes import Outcome
from reprobuild.in_image.selftest.parent import judge
from reprobuild.in_image.selftest.registry import (
    ACROSS,
    CHECKS,
    CONTROL,
    WITHIN,
    Check,
)

COMPARED = Check("bmm", "", (WITHIN, ACROSS), ("cpu",), CHECKS["bmm"].run)


CONTROLLED = Check("control", "", (CONTROL,), ("cpu",), CHECKS["control"].run)


ONE, OTHER = Outcome("passed", results={"a": "1", "b": "2"}), Outcome("passed", results={"a": "1", "b": "3"})


BAD, NONE, UNSURE = Outcome("failed", "bad"), Outcome("not-run", "none"), Outcome("inconclusive", "unsure")


@pytest.mark.parametrize(
    ("check", "first", "second", "status", "reason"),
    [
        (COMPARED, ONE, ONE, "passed", ""),
        (COMPARED, ONE, OTHER, "failed", "two processes differ"),
        (COMPARED, ONE, Outcome("passed", results={"a": "1"}), "failed", "two processes differ"),
        (COMPARED, ONE, BAD, "failed", "bad"),
        (COMPARED, BAD, ONE, "failed", "bad"),
        (COMPARED, NONE, NONE, "not-run", "none"),
        (COMPARED, ONE, NONE, "failed", "passed in one process, not-run in the other"),
        (COMPARED, None, ONE, "not-run", "a process had ended before"),
        (COMPARED, BAD, None, "failed", "bad"),
        (COMPARED, None, None, "not-run", "a process had ended before"),
        (CONTROLLED, UNSURE, ONE, "passed", ""),
        (CONTROLLED, UNSURE, UNSURE, "inconclusive", "unsure"),
        (CONTROLLED, UNSURE, BAD, "failed", "bad"),
    ],
)
def test_one_outcome_is_made_of_two(
    check: Check, first: Outcome | None, second: Outcome | None, status: str, reason: str
) -> None:
    outcome = judge(check, first, second, processors=1)
    assert (outcome.status, outcome.reason) == (status, reason)


def test_a_control_that_sees_nothing_on_two_processors_fails_the_image() -> None:
    """On one there is nothing to race; --prove, which is about the machine, stays inconclusive on any."""
    assert judge(CONTROLLED, UNSURE, UNSURE, processors=2).status == "failed"
    assert judge(CONTROLLED, UNSURE, ONE, processors=2).status == "passed"
    proof = replace(CONTROLLED, part="prove")
    assert judge(proof, UNSURE, UNSURE, processors=2).status == "inconclusive"


def test_what_differs_between_processes_is_named() -> None:
    assert judge(COMPARED, ONE, OTHER, processors=1).detail == [{"what": "b", "expected": "2", "got": "3"}]
