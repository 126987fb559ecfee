"""The page of ``twice`` in a real browser: the verdict, what parted first, and nothing from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reprobuild.twice.compare import EndDifference
from reprobuild.twice.page import twice_page
from reprobuild.twice.report import verdict_line
from support.browser import colours, dom
from support.parted import compared


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
