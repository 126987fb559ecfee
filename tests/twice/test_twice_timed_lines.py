"""Lines that are written as time passes."""

from __future__ import annotations

import pytest

from reprobuild.twice.evidence import Evidence
from reprobuild.twice.faster_clocks import FasterRun
from reprobuild.twice.text_differences import Texts
from reprobuild.twice.timed_lines import TIMED, without_timed

WHERE = "standard output"


def progress(*parts: float, speed: int = 7574) -> list[str]:
    return [
        "begin",
        *(f"12:00:01 PROGRESS: at {part}% examples, {speed} words/s" for part in parts),
        "loss 0.5",
    ]


ALL = progress(*range(10, 100, 5), speed=9)


def faster(most: list[str] = ALL, some: list[str] = ALL) -> list[FasterRun]:
    return [FasterRun(100, {WHERE: some}), FasterRun(1000, {WHERE: most})]


def test_lines_that_time_chooses_are_no_result() -> None:
    one, other, timed = without_timed(progress(20, 60), progress(35, speed=1), faster(), WHERE)
    assert one == other == ["begin", "loss 0.5"]
    assert timed == [(progress(20)[1], progress(35, speed=1)[1])]
    texts = Texts(Evidence(), Evidence(), faster=faster())
    number, found = texts.compare(progress(20, 60), progress(35, speed=1), WHERE, many=False)
    assert (number, [each.kind for each in found]) == (None, [TIMED])


@pytest.mark.parametrize(
    ("one", "other", "runs"),
    [
        (progress(20), progress(36), faster()),
        (progress(20), progress(35), []),
        (progress(20), progress(35), faster(progress(20, 35), progress(20))),
        (progress(20), progress(35), faster(progress(20), progress(20))),
        (progress(20), progress(35), faster(progress(20, 35), progress(20, 35, 40))),
    ],
    ids=["another value", "no such run", "as many", "fewer", "fewer with the fastest"],
)
def test_others_count(one: list[str], other: list[str], runs: list[FasterRun]) -> None:
    assert without_timed(one, other, runs, WHERE) == (one, other, [])


def test_a_result_beside_them_counts() -> None:
    texts = Texts(Evidence(), Evidence(), faster=faster())
    one, other = progress(20, 60), [*progress(35)[:-1], "loss 0.6"]
    number, _ = texts.compare(one, other, WHERE, many=False)
    assert number == 1
