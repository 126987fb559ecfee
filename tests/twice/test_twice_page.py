"""The page of ``twice`` in a real browser: the verdict, what parted first, and nothing from elsewhere."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reprobuild.twice.compare import EndDifference
from reprobuild.twice.page import twice_page
from reprobuild.twice.records import Moment, MomentPart, Stream
from reprobuild.twice.report import cost, notes, verdict_line
from reprobuild.twice.runs import Comparison, ProgramRun, between
from support.browser import colours, dom


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


def test_the_verdict_names_step_and_tensor() -> None:
    assert verdict_line(compared(1e-6)) == (
        "parts at step 37 (AdamW): gradients of `<script>`; batch and loss before it were equal"
    )
    assert verdict_line(compared(0.0)) == "repeats bit for bit (2 runs, 60 steps, 1 line of output, 0 files)"


def test_the_same_runs_give_the_same_page_which_loads_nothing() -> None:
    page = twice_page(compared(1e-6, EndDifference(what="exit status", told="<b>no</b>"))).decode()
    assert page == twice_page(compared(1e-6, EndDifference(what="exit status", told="<b>no</b>"))).decode()
    addresses = re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?([^"')\s>]+)""", page)
    assert set(addresses) <= {"data:,"}
    assert "<script" not in page
    assert "<b>no" not in page


@pytest.mark.slow
def test_a_browser_shows_where_it_parts(tmp_path: Path) -> None:
    page = tmp_path / "twice.html"
    page.write_bytes(twice_page(compared(1e-6)))
    shown = dom(page)
    assert shown.count('class="first"') == 1
    assert shown.count('class="parts"') == 22
    assert "seen once, not caught again: 3 pairs" in shown
    assert colours(page, tmp_path / "picture.png")[204, 0, 0] > 500


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({"cut": True}, "the program took more steps than are recorded; what came later was not compared"),
        ({"hooks": False}, "the program took the recorder's hooks away, so steps may be missing"),
    ],
    ids=["too many steps", "hooks taken away"],
)
def test_of_an_incomplete_recording_nothing_more_is_promised(change: Any, note: str) -> None:
    found = compared(0.0)
    whole = [replace(stream, **change) for stream in found.runs[1].streams]
    incomplete = replace(found, runs=[found.runs[0], replace(found.runs[1], streams=whole)])
    assert verdict_line(incomplete).startswith("repeats as far as it was recorded")
    assert note in notes(incomplete)


def test_a_tensor_that_could_not_be_read_is_told() -> None:
    found = compared(0.0)
    stream = found.runs[0].streams[0]
    unread = replace(
        stream.moments[0], parts=(*stream.moments[0].parts, part("not recorded: tensors of type Odd", 0))
    )
    runs = [replace(run, streams=[replace(stream, moments=[unread])]) for run in found.runs]
    assert verdict_line(replace(found, runs=runs)).startswith("repeats as far as it was recorded")


def test_the_same_bad_end_each_time_is_no_success() -> None:
    found = compared(0.0)
    crashed = replace(found, runs=[replace(run, status=134) for run in found.runs])
    assert verdict_line(crashed).startswith("was ended by signal 6 in each run; until then it repeats")


def test_the_cost_is_told_by_the_recorders_clock_or_by_a_run_without() -> None:
    found = compared(0.0)
    own = "the recorder took 2.0 % of the steps' time by its own clock; --cost measures it by a run without"
    assert cost(found) == f"{own}, --every N makes it less"
    quick = [replace(moment, wall=0.4) for moment in found.runs[0].streams[0].moments]
    plain = replace(found.runs[0], streams=[replace(found.runs[0].streams[0], moments=quick)])
    assert cost(replace(found, plain=plain)) == (
        "+25.0 %: a step took 500 ms with the recorder and 400 ms without"
        " (medians of 118 steps, and of a run without)"
    )
    assert cost(replace(found, plain=replace(plain, streams=[]))).startswith(
        "not measured: a process has to take"
    )
