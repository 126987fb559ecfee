"""Comparisons of runs, for tests of what is said of them.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from reprobuild.twice.first_difference import EndDifference
from reprobuild.twice.recorded_run import Comparison, ProgramRun, between
from reprobuild.twice.records import Moment, MomentPart, Stream


def part(name: str, value: object) -> MomentPart:
    digest = hashlib.sha256(repr(value).encode())
    return MomentPart(name, digest.hexdigest()[:32], b"".join((b"weight  ", digest.digest()[:8])))


def run(drift: float) -> ProgramRun:
    """Sixty steps that part at step 37 by a drift that grows."""
    stream = Stream(rank="", worker="", process="MainProcess", argv=("train.py",), values=Path())
    stream.torch = {"torch": "2.13.0"}
    for number in range(60):
        gone = drift * max(0, number - 36) ** 2
        loss = 2.0 - number / 60 + gone
        parts = (
            part("batch", number),
            part("loss", number if number <= 37 else loss),
            part("gradients", gone),
            part("random python", drift),  # which nobody seeds, and nothing draws from
        )
        stream.moments.append(
            Moment(
                kind="step",
                label=f"step {number} (AdamW)",
                number=number,
                parts=parts,
                names={"gradients": ("embed.weight", "<script>")},
                losses=(loss,),
                sample=(),
                wall=0.5,
                spent=0.01,
            )
        )
    return ProgramRun(
        status=0, stdout=("done",), stderr=(), files=(), streams=[stream], seconds=30.0, last=""
    )


def compared(drift: float, *ends: EndDifference) -> Comparison:
    runs = [run(0.0), run(drift)]
    parting, _, _ = between(runs[0], runs[1])
    return Comparison(
        runs=runs,
        other=2,
        parting=parting,
        ends=ends,
        cause=None,
        traced=3 if parting else 0,
        plain=None,
        every=1,
    )
