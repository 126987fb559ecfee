"""Changes between locks as a table of Markdown."""

from __future__ import annotations

from dataclasses import replace

from reprobuild.cli.markdown import cell, changes_as_markdown, sum_of
from reprobuild.lock.diff import Change
from support.locks import LOCK

TORCH = Change(
    kind="python",
    name="torch",
    old="2.4.0",
    new="2.4.1",
    old_size=1000,
    new_size=3000,
    meaning="numbers",
    why="it computes",
)
GONE = Change(
    kind="debian",
    name="tzdata",
    old="2024a",
    new=None,
    old_size=500,
    meaning="nothing",
    why="nobody reads it",
)


def test_changes_are_sorted_by_what_they_can_move() -> None:
    page = changes_as_markdown([LOCK], [replace(LOCK)], [TORCH, GONE])
    assert page.startswith(f"### Lock of {LOCK.request.name}: 2 changes\n")
    first, second = page.index("**Can move numbers**"), page.index("**Cannot move either**")
    assert first < page.index("| python | `torch` | `2.4.0` | `2.4.1` | +2.0 kB | it computes |") < second
    assert "| debian | `tzdata` | `2024a` |  | -500 B | nobody reads it |" in page[second:]
    assert sum_of([TORCH, GONE]) == "1 can move numbers, 1 cannot; +1.5 kB in size"


def test_nothing_changed() -> None:
    assert changes_as_markdown([LOCK], [LOCK], []).startswith(
        f"### Lock of {LOCK.request.name}: nothing changed"
    )


def test_no_value_ends_its_cell() -> None:
    assert cell("a|b`c\nd") == "a\\|b'c d"
