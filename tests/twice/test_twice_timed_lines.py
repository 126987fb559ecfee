"""Lines that are written as time passes."""

from __future__ import annotations

import pytest

from reprobuild.twice.derived_items import Item
from reprobuild.twice.evidence import Evidence
from reprobuild.twice.faster_clocks import FasterRun
from reprobuild.twice.text_differences import Texts
from reprobuild.twice.timed_lines import OF_LIBRARY, TIMED, Side, without_libraries_lines, without_timed

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


@pytest.mark.parametrize(("many", "result"), [(4, False), (2, True)])
def test_the_first_lines_that_a_log_is_kept_of_tell_which_numbers_are_measured(
    many: int, result: bool
) -> None:
    most, some = faster()
    few = dict([*most.evidence.messages.items()][:many])
    kept = FasterRun(most.times, most.texts, Evidence(began=NOON, ended=NOON + 60, messages=few))
    left = without_timed(ONE, OTHER, [some, kept], WHERE)
    assert (left[0] == ONE[0]) is result


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


FAST = "mtime may not be reliable on this filesystem, falling back to numerical ordering"


@pytest.mark.parametrize(
    "begin", ["", "[transformers] ", "[WARNING|trainer_utils.py:323] 2031-01-31 12:00:01,123 >> "]
)
def test_a_library_s_line_that_tells_how_fast_it_was_is_no_result(begin: str) -> None:
    line, rest = begin + FAST, ["begin", "loss 0.5"]
    for one, other in ((["begin", line, "loss 0.5"], rest), ([*rest, line], [line, *rest])):
        left, right, told = without_libraries_lines(one, other)
        assert left == right == rest
        assert told == [(line, line if line in other else "")]
        number, found = Texts(Evidence(), Evidence()).compare(one, other, WHERE, many=False)
        assert (number, [each.kind for each in found]) == (None, [OF_LIBRARY])
    assert without_libraries_lines(rest, rest) == (rest, rest, [])


@pytest.mark.parametrize(
    "line",
    [f"loss 0.51 {FAST}", f"{FAST}: 0.5", f"\r 56%| 67/120 [00:02<00:01, loss=0.7][transformers] {FAST}"],
)
def test_a_line_of_that_kind_with_anything_beside_is_a_result(line: str) -> None:
    lines = ["begin", line, "loss 0.5"]
    assert Texts(Evidence(), Evidence()).compare(lines, ["begin", "loss 0.5"], WHERE, many=False)[0] == 1


def test_the_lines_of_a_difference_are_those_that_differ() -> None:
    """And not the lines of that number among all."""
    texts = Texts(Evidence(), Evidence())
    one, other = ["begin", FAST, "loss 0.5"], ["begin", "loss 0.6"]
    assert texts.compare(one, other, WHERE, many=False)[0] == 1
    assert texts.apart == ("loss 0.5", "loss 0.6")


def test_a_line_with_a_drawn_name_is_not_left_out_for_the_form_of_its_digits() -> None:
    """As the ids of the cells of a notebook: some have digits alone, more or fewer in each run."""
    runs = [["12345678", "2836c791"], ["1a2b3c4d", "5e6f7a8b"], ["11111111", "22222222"], ["33333333"] * 2]
    lines = [[f'"id": "{each}",' for each in run] for run in runs]
    sides = [Evidence(names={"threads' uuids": tuple(run)}) for run in runs]
    faster_runs = [FasterRun(times, {WHERE: lines[at]}, sides[at]) for at, times in ((2, 100), (3, 1000))]
    assert without_timed((lines[0], sides[0]), (lines[1], sides[1]), faster_runs, WHERE)[2] == []
    number, _ = Texts(sides[0], sides[1], faster=faster_runs).compare(lines[0], lines[1], WHERE, many=False)
    assert number is None
