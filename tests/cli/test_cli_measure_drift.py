"""What ``diff --measure --markdown`` says of operations that moved."""

from __future__ import annotations

from reprobuild.cli.measure_drift import MOST_ROWS, drift_as_markdown
from reprobuild.twice.drift import Drift, Moved
from reprobuild.twice.records import ProgramLine


def drift(moved: int) -> Drift:
    one = Moved(
        operation="aten::mm",
        place=ProgramLine("train.py", 3, "step", "x @ y"),
        module="net|0",
        backward=True,
        stream="0",
        times=2,
        by_itself=1,
        ulp=7,
    )
    return Drift(
        moved=(one,) * moved, compared=9, only=(0, 1), restless=0, cut=False, kinds=("threads 4, 8",)
    )


def test_operations_that_moved_are_a_table() -> None:
    line = (
        "1 operations moved, 1 of them by themselves (9 calls compared; 0 only in the old image, 1 only in "
        "the new one)."
    )
    assert drift_as_markdown(drift(1)).splitlines() == [
        *("#### Operations", "", line, "Also differs: threads 4, 8.", ""),
        "| Operation | Where | Times | ULP | |",
        "|---|---|---:|---:|---|",
        "| `aten::mm, backward` | `train.py:3 (net\\|0)` | 2 | 7 ULP | moved itself |",
    ]
    assert drift_as_markdown(drift(MOST_ROWS + 2)).endswith("|\n\n2 more.")


def test_nothing_that_moved_is_a_line() -> None:
    assert "No operation moved (9 calls" in drift_as_markdown(drift(0))
