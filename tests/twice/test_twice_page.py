"""The page of ``twice`` in a real browser: the verdict, what parted first, and nothing from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from reprobuild.twice.causes import Cause
from reprobuild.twice.external_values import Candidate
from reprobuild.twice.first_difference import EndDifference
from reprobuild.twice.known_causes import Remedy
from reprobuild.twice.page import AboutRun, lines_around, places_of, twice_page
from reprobuild.twice.records import ProgramLine
from reprobuild.twice.report import verdict_line
from reprobuild.twice.text_differences import TextDifference
from support.browser import colours, dom
from support.parted import compared

SOURCE = "".join(f"line {number}\n" for number in range(1, 30))
ABOUT = AboutRun(
    rows=[("command", "python3 train.py"), ("image", "reprobuild/a:1")],
    sources=[("/code/train.py:20", lines_around(SOURCE, 20))],
)


def test_the_verdict_names_step_and_tensor() -> None:
    assert verdict_line(compared(1e-6)) == (
        "parts at step 37 (AdamW): gradients of `<script>`; batch and loss before it were equal"
    )
    assert verdict_line(compared(0.0)) == "repeats bit for bit (2 runs, 60 steps, 1 line of output, 0 files)"


def test_the_same_runs_give_the_same_page_which_loads_nothing() -> None:
    page = twice_page(compared(1e-6, EndDifference(what="exit status", told="<b>no</b>")), ABOUT).decode()
    assert (
        page
        == twice_page(compared(1e-6, EndDifference(what="exit status", told="<b>no</b>")), ABOUT).decode()
    )
    addresses = re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?([^"')\s>]+)""", page)
    assert set(addresses) <= {"data:,"}
    assert "<script" not in page
    assert "<b>no" not in page


def test_the_page_stands_alone_and_keeps_what_is_proven_from_what_is_not() -> None:
    cause = Cause(
        kind="operation", operation="aten.add", place=ProgramLine("/code/train.py", 20, "main", "line 20"),
        module="", stream="", backward=False, thread="", shapes=(), ulp=3, deterministic=True,
        remedy=Remedy("", "", ""), told="it races",
        candidates=(
            Candidate("clock", "time.time", ProgramLine("/code/train.py", 3, "main", ""), ("1", "2"), 0, 0),
        ),
        proven=False,
    )  # fmt: skip
    text = TextDifference(where="line 1 of the output", values=("0.1 s", "0.2 s"), kind="a clock")
    page = twice_page(replace(compared(1e-6), cause=cause, texts=(text,)), ABOUT).decode()
    assert "<code>python3 train.py</code>" in page
    assert '<span class="cause">   20  line 20</span>' in page
    assert page.count("<span") == 11
    assert page.index("first operation") < page.index("<h2>Candidates</h2>") < page.index("time.time gave")
    assert "<td>0.1 s</td><td>0.2 s</td><td>a clock</td>" in page
    assert re.findall(r"<details><summary>(.*?)<", page) == ["32 moments before", "3 moments after"]
    assert "step 0 (AdamW)</text>" in page
    assert [place.line for place in places_of(replace(compared(1e-6), cause=cause))] == [20]
    proven = replace(compared(1e-6), cause=replace(cause, proven=True))
    assert [place.line for place in places_of(proven)] == [3, 20]


@pytest.mark.parametrize(("line", "numbers"), [(1, range(1, 7)), (29, range(24, 30)), (0, ()), (30, ())])
def test_lines_around_the_ends_of_a_source(line: int, numbers: Sequence[int]) -> None:
    assert [number for number, _, _ in lines_around(SOURCE, line)] == [*numbers]


@pytest.mark.slow
def test_a_browser_shows_where_it_parts(tmp_path: Path) -> None:
    page = tmp_path / "twice.html"
    page.write_bytes(twice_page(compared(1e-6), ABOUT))
    shown = dom(page)
    assert shown.count('class="first"') == 1
    assert shown.count('class="parts"') == 22
    assert "seen once, not caught again: 3 pairs" in shown
    assert colours(page, tmp_path / "picture.png")[204, 0, 0] > 500
