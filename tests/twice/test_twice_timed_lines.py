"""Lines that are written as time passes."""

from __future__ import annotations

import pytest

from reprobuild.twice.derived_items import Item
from reprobuild.twice.evidence import Evidence
from reprobuild.twice.faster_clocks import FasterRun
from reprobuild.twice.text_differences import Texts
from reprobuild.twice.timed_lines import OF_LIBRARIES, TIMED, Side, without_timed

WHERE = "standard output"
NOON = 1927627200.0


def progress(*parts: float, speed: int = 7574) -> list[str]:
    written = [f"2031-01-31 12:00:01 PROGRESS: at {part}% examples, {speed} words/s" for part in parts]
    return ["begin", *written, "loss 0.5"]


def known(lines: list[str], kind: str = "message 0") -> Evidence:
    """What a run knows: where in these lines stands a speed that it had measured."""
    messages = {}
    for at, line in enumerate(lines[1:-1]):
        begin = line.rindex(",") + 2
        item = Item((kind, "train.py", 3, 0), line, at, 0)
        messages[line] = [(begin, line.rindex(" words"), item)]
    return Evidence(began=NOON, ended=NOON + 60, messages=messages)


def side(*parts: float, speed: int = 7574) -> Side:
    lines = progress(*parts, speed=speed)
    return lines, known(lines)


ONE, OTHER = side(20, 60), side(35, speed=1234)
EACH = range(10, 100, 5)


def faster(some: tuple[int, ...] = (*EACH,), most: tuple[int, ...] = (*EACH,)) -> list[FasterRun]:
    runs = []
    for times, parts in ((1000, most), (100, some)):
        lines, evidence = side(*parts, speed=9)
        runs.append(FasterRun(times, {WHERE: lines}, evidence))
    return runs


def test_lines_that_time_chooses_are_no_result() -> None:
    one, other, timed = without_timed(ONE, OTHER, faster(), WHERE)
    assert one == other == ["begin", "loss 0.5"]
    assert timed == [(ONE[0][1], OTHER[0][1])]
    texts = Texts(ONE[1], OTHER[1], faster=faster())
    number, found = texts.compare(ONE[0], OTHER[0], WHERE, many=False)
    assert (number, [each.kind for each in found]) == (None, [TIMED])


def test_one_run_may_have_ended_before_the_first() -> None:
    _, _, timed = without_timed(ONE, (["begin", "loss 0.5"], Evidence()), faster(), WHERE)
    assert timed == [(ONE[0][1], "")]


@pytest.mark.parametrize(
    ("one", "other", "runs"),
    [
        (ONE, side(36), faster()),
        (ONE, (progress(35), known(progress(45))), faster()),
        (ONE, (progress(35), known(progress(35), "maybe message 0")), faster()),
        (ONE, OTHER, []),
        (ONE, OTHER, faster((20, 60), (20, 35, 60))),
        (ONE, OTHER, faster((20, 35, 60, 65), (20, 35, 60))),
    ],
    ids=["another value", "a speed that nobody measured", "perhaps measured", "no such run", "as many",
         "fewer with the fastest"],
)  # fmt: skip
def test_others_count(one: Side, other: Side, runs: list[FasterRun]) -> None:
    assert without_timed(one, other, runs, WHERE) == (one[0], other[0], [])


def test_a_result_beside_them_counts() -> None:
    texts = Texts(ONE[1], OTHER[1], faster=faster())
    number, _ = texts.compare(ONE[0], [*OTHER[0][:-1], "loss 0.6"], WHERE, many=False)
    assert number == 1


def test_a_library_s_line_that_tells_how_fast_it_was_is_no_result() -> None:
    line = f"[WARNING|trainer_utils.py:323] 2031-01-31 12:00:01,123 >> {OF_LIBRARIES[0]}"
    one, other = (["begin", line, "loss 0.5"], Evidence()), (["begin", "loss 0.5"], Evidence())
    assert without_timed(one, other, (), WHERE) == (other[0], other[0], [(line, "")])
    assert without_timed(one, one, (), WHERE) == (one[0], one[0], [])
    later = ["begin", "loss 0.5", line], Evidence()
    assert without_timed(one, later, (), WHERE) == (other[0], other[0], [(line, line)])
    wrong = ["begin", "loss 0.6"], Evidence()
    texts = Texts(Evidence(), Evidence())
    assert texts.compare(one[0], wrong[0], WHERE, many=False)[0] == 1
    assert texts.apart == ("loss 0.5", "loss 0.6")  # and not the lines of that number in the whole
    assert without_timed((["begin", f"{line}: 0.5"], Evidence()), other, (), WHERE)[2] == []
