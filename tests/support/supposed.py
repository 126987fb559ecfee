"""What a trace supposes to be the cause, for tests of experiments."""

from __future__ import annotations

from reprobuild.twice import known_causes
from reprobuild.twice.causes import Cause
from reprobuild.twice.external_values import Candidate
from reprobuild.twice.records import ProgramLine


def candidate(kind: str, name: str, line: int) -> Candidate:
    return Candidate(kind, name, ProgramLine("train.py", line, "main", ""), ("1", "2"), line, 1)


DRAW, UUID = candidate("draw", "numpy.random.rand", 3), candidate("entropy", "uuid.uuid4", 5)
CLOCKS = tuple(candidate("clock", "time.time", line) for line in (7, 8))


def supposed(*candidates: Candidate) -> Cause:
    """What the trace supposes of these, before an experiment."""
    return Cause(
        kind="outside", operation="lift_fresh.default", place=ProgramLine("train.py", 9, "main", ""),
        module="", stream="", backward=False, thread="", shapes=(), ulp=None, deterministic=True,
        remedy=known_causes.OUTSIDE, candidates=candidates, told="an input differs", proven=True,
    )  # fmt: skip
