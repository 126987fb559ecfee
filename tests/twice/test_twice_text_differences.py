"""Texts of two runs: what a clock or a drawn name gave is told apart from results, by evidence."""

from __future__ import annotations

import os
import random
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import example, given, settings
from hypothesis.strategies import text

from reprobuild.twice.derived_items import Item
from reprobuild.twice.evidence import Evidence
from reprobuild.twice.faster_clocks import BY_DIGITS, PACES, FasterRun
from reprobuild.twice.first_difference import lines_apart
from reprobuild.twice.ignored import Ignored
from reprobuild.twice.recorded_run import Comparison, HowToRun, ProgramRun, between, faster_runs
from reprobuild.twice.report import rows, verdict, verdict_line
from reprobuild.twice.text_differences import Texts
from support.twice import PROGRAMS, compared, recorded, scratch_below

PROGRAM = str(PROGRAMS / "texts.py")
SITE = ("text", "train.py", 3, 0)
EXAMPLES = int(os.environ.get("REPROBUILD_TEST_EXAMPLES", "50"))


NATIVE = ("awaited", "dated", "documents", "folds", "libraries", "passed_on")
"""Times that are measured by other means than Python's clocks, or computed outside of Python."""


def ran(name: str, folder: Path, ignored: Ignored | None = None) -> Comparison:
    how = HowToRun(trace=False, ignored=ignored or Ignored())
    return compared(sys.executable, [PROGRAM, name], folder, how=how)


@pytest.mark.parametrize(
    "name", ["durations", "names", "clocks", "logged", "logged_briefly", "table", "bar", *NATIVE]
)
def test_what_a_clock_or_a_draw_of_a_name_gave_is_no_result(name: str, tmp_path: Path) -> None:
    found = ran(name, tmp_path)
    assert verdict(found) == "text", [verdict_line(found), *rows(found)]
    assert found.texts[0].values[0] != found.texts[0].values[1]


def test_a_result_of_one_digit_counts_beside_durations_of_one(tmp_path: Path) -> None:
    found = [ran("logged_result", tmp_path) for _ in range(4)]
    for each in found:
        scores = {line.partition("scores")[2] for run in each.runs for line in run.stderr if "scores" in line}
        assert (verdict(each) == "parts") == (len(scores) > 1), [verdict_line(each), *rows(each)]
    assert "parts" in map(verdict, found)


@pytest.mark.parametrize("score", range(2))
def test_of_a_logged_message_the_measured_number_alone_may_differ(score: int) -> None:
    """One that differs in one line, by one: by itself it could be anything."""
    sides, logs = [], []
    for last, result in ((0, 0), (1, score)):
        walls = [0] * 7 + [last]
        logs.append([f"INFO step {at}: wall {wall} errors {result * wall}" for at, wall in enumerate(walls)])
        sides.append(
            Evidence(
                messages={
                    line[5:]: [(13, 14, Item(("message 0", "train.py", 3, 0), line, at, 7 - at))]
                    for at, line in enumerate(logs[-1])
                }
            )
        )
    number, _ = Texts(*sides).compare(logs[0], logs[1], "standard error", many=False)
    assert number == (7 if score else None)


def test_dates_of_a_program_s_own_classes_do_not_fail(tmp_path: Path) -> None:
    found = ran("of_classes", tmp_path)
    assert (found.runs[0].status, found.runs[0].stdout[0]) == (0, "True True"), found.runs[0].last


def test_a_result_counts_whatever_its_name_is(tmp_path: Path) -> None:
    found = ran("results", tmp_path)
    assert verdict_line(found).startswith("parts at its end: line 1 of standard output: run 1 wrote 'median")


@pytest.mark.parametrize("name", ["winner", "sequence", "one_by_one"])
def test_what_the_system_draws_and_makes_no_name_is_a_result(name: str, tmp_path: Path) -> None:
    assert verdict(ran(name, tmp_path)) == "parts"


def test_the_order_counts_on_a_stream_to_which_no_log_of_others_is_written(tmp_path: Path) -> None:
    found = ran("ranked", tmp_path)
    # Not always the first line: each order may begin with the same number.
    assert re.match(r"parts at its end: line \d of standard output: run 1 wrote 'ranked", verdict_line(found))


@pytest.fixture(scope="module")
def mixed() -> Comparison:
    with tempfile.TemporaryDirectory() as folder:
        found = ran("mixed", Path(folder))
        assert verdict(found) == "text", [verdict_line(found), *rows(found)]
        how = HowToRun()
        run = recorded(sys.executable, [str(PROGRAMS / "texts.py"), "mixed"])
        faster = faster_runs(run, how, found.runs, scratch_below(Path(folder)), lambda _: None)
        return replace(found, faster=faster)


_RESULT = re.compile(r"(?:loss|score|digest|best_time)=(?:\": )?(?:0x)?([0-9a-f.]+)")


def mutated(run: ProgramRun, draw: random.Random) -> tuple[ProgramRun, str]:
    """Return the run with one digit of one result changed, and the line."""
    texts = [list(run.stdout), *(list(file.lines or ()) for file in run.files)]
    lines = draw.choice(texts)
    found = [(n, m) for n, line in enumerate(lines) for m in _RESULT.finditer(line)]
    number, match = draw.choice(found)
    at = draw.choice([i for i in range(*match.span(1)) if lines[number][i].isdigit()])
    digit = draw.choice([d for d in "0123456789" if d != lines[number][at]])
    lines[number] = f"{lines[number][:at]}{digit}{lines[number][at + 1 :]}"
    files = [
        replace(file, lines=tuple(text), digest="changed" if text is lines else file.digest)
        for file, text in zip(run.files, texts[1:], strict=True)
    ]
    return replace(run, stdout=tuple(texts[0]), files=files), lines[number]


def test_any_digit_of_any_result_that_changes_is_reported(mixed: Comparison) -> None:
    for seed in range(EXAMPLES):
        draw = random.Random(seed)
        sides = list(mixed.runs)
        side = draw.randrange(2)
        sides[side], line = mutated(sides[side], draw)
        _, ends, texts = between(sides[0], sides[1])
        if not ends and any(each.kind == BY_DIGITS for each in texts):  # as `compare_runs` does
            _, ends, _ = between(sides[0], sides[1], faster=mixed.faster)
        assert ends, f"seed {seed}: {line}"


@pytest.mark.parametrize(
    ("line", "known"),
    [("used %s0.000 MB more", True), ("used %s0.120 MB more", False), ("of process %s4321", False)],
)
def test_a_sign_alone_is_a_result_but_of_a_measure_that_is_rounded_to_zero(line: str, known: bool) -> None:
    items = [Item(SITE, value, at, 0) for at, value in enumerate(("0.000", "0.120"))]
    sides = [Evidence(items=items, names={"process numbers": ("4321",)}) for _ in "ab"]
    grown = [
        FasterRun(times, {"standard output": [re.sub(r"%s[0.]+", f"+{0.0004 * times}", line)]})
        for times in (100, 1000)
    ]
    texts = Texts(*sides, faster=grown)
    number, found = texts.compare([line % "+"], [line % "-"], "standard output", many=False)
    assert (number is None) == known
    assert not known or found[0].values == (line % "+", line % "-")


@pytest.mark.parametrize(
    ("line", "kind"),
    [("loss=%s", BY_DIGITS), ("took %s s", "duration or speed"), ("ended after %s", BY_DIGITS)],
)
def test_a_short_number_without_words_of_measure_has_to_grow(line: str, kind: str) -> None:
    """It may be a time, or have the digits of one by chance."""
    sides = [Evidence(items=[Item(SITE, value, 0, 0)]) for value in ("0.006", "0.007")]
    lines = [[line % "0.006"], [line % "0.007"]]
    [found] = Texts(*sides).compare(lines[0], lines[1], "standard output", many=False)[1]
    assert found.kind == kind
    for grows in (True, False):
        faster = [
            FasterRun(times, {"standard output": [line % f"{0.0061 * times if grows else 0.006:.3f}"]})
            for times in PACES
        ]
        number, _ = Texts(*sides, faster=faster).compare(lines[0], lines[1], "standard output", many=False)
        assert (number is None) == (grows or kind != BY_DIGITS)


def test_what_logging_writes_of_a_time_is_sure_with_few_digits() -> None:
    """Of milliseconds of a second, faster clocks tell nothing."""
    site = ("text", "/usr/lib/python3.11/logging/__init__.py", 3, 0)
    sides = [Evidence(items=[Item(site, value, 0, 0)]) for value in ("139", "268")]
    faster = [FasterRun(times, {"standard error": ["at [412.0]"]}) for times in PACES]
    texts = Texts(*sides, faster=faster)
    number, [found] = texts.compare(["at [139]"], ["at [268]"], "standard error", many=False)
    assert (number, found.kind) == (None, "duration or speed")


NINES = "9" * 5000


@settings(max_examples=EXAMPLES * 10)
@example(f"0e{NINES}", "1e2")
@example("loss 8e681493462", "loss 1e5")
@example(f"{NINES} days, 1:00:00", f"1700000000.{NINES}")
@given(*2 * [text("0123456789.,:eE+-/ xTZadysm", max_size=40)])
def test_no_text_is_too_odd(one: str, other: str) -> None:
    sides = [
        Evidence(items=[Item(SITE, 0.5, 0, 0), Item(SITE, 1700000001.5, 1, 0)], began=1.7e9, ended=1.7e9 + 9)
    ] * 2
    number, _ = Texts(*sides).compare([one], [other], "standard output", many=False)
    assert one != other or number is None


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("clusters %d", True),
        ("took %d s", False),
        ("clusters %d.25", False),
        ("time 0.25 clusters=%d", True),
        ("clusters %d time 0.25", True),
        ("time 0.25 (avg %d)", False),
        ("time 0.25 (avg 0.5) clusters=%d", True),
        ("clusters %d s: 4", True),
        ("beta %d", True),
        ("sentiment %d", True),
        ("secondary %d", True),
        ("datatime %d", False),
    ],
)
def test_a_short_number_is_a_duration_only_where_words_say_so(line: str, counts: bool) -> None:
    """The value of a clock that C code wrote, or a result that is near it by chance."""
    site = ("value", "train.py", 3, 0)
    one, other = (Evidence(items=[Item(site, value, 0, 0)]) for value in (2.25, 3.25))
    number, _ = Texts(one, other).compare([line % 2], [line % 3], "standard output", many=False)
    assert (number is not None) == counts


def test_a_number_may_be_in_many_brackets() -> None:
    """A program's line is of any form."""
    nested = "[1" * 3000
    found = Texts(Evidence(), Evidence()).compare([f"{nested}[2"], [f"{nested}[3"], "x", many=False)
    assert found[0] == 0


def test_a_count_is_no_duration_because_many_lines_of_its_form_have_a_small_one() -> None:
    sides = [
        Evidence(
            items=[Item(("value", "train.py", 3, 0), each, at, 23 - at) for at, each in enumerate(values)]
        )
        for values in ((0.2,) * 24, (*(0.2,) * 12, 0.9, *(0.2,) * 11))
    ]
    lines = [
        [f"row {name} wrong {count}" for name, count in zip(range(23, 27), counts, strict=True)]
        for counts in ((0, 0, 0, 0), (0, 0, 1, 0))
    ]
    assert Texts(*sides).compare(lines[0], lines[1], "standard output", many=False)[0] == 2


@pytest.mark.parametrize("score", ["0.25", "0.26"])
def test_a_time_may_be_written_like_another_number_of_its_line(score: str) -> None:
    sides, lines = [], []
    for first in (0.0521, 0.0008):
        took = [first, *(0.0031 * (at + 2) for at in range(20))]
        items = [Item(("value", "train.py", 3, 0), each, at, 20 - at) for at, each in enumerate(took)]
        sides.append(Evidence(items=items))
        lines.append([f"last_time: {each:.4f} data_time: 0.0008 score 0.25" for each in took])
    lines[1][0] = lines[1][0].replace("0.25", score)
    found = Texts(*sides).compare(lines[0], lines[1], "standard output", many=False)
    assert found[0] == (None if score == "0.25" else 0)


def test_the_order_in_which_tasks_take_their_times_does_not_count() -> None:
    one, other = (
        Evidence(
            items=[Item(("value", "train.py", 3, 0), each, at, 1 - at) for at, each in enumerate(values)]
        )
        for values in ((0.123456789, 0.234567891), (0.345678901, 0.456789012))
    )
    lines = ["a 0.123456789, b 0.234567891"]
    swapped, wrong = ["a 0.456789012, b 0.345678901"], ["a 0.456789012, b 0.345978901"]
    assert Texts(one, other).compare(lines, swapped, "standard output", many=False)[0] is None
    assert Texts(one, other).compare(lines, wrong, "standard output", many=False)[0] == 0


def test_the_worker_of_a_pool_that_gets_a_task_does_not_count() -> None:
    evidence = Evidence(names={"pool workers": ("ForkPoolWorker-1", "4401", "ForkPoolWorker-2", "4402")})
    lines = ["ForkPoolWorker-1 4401 task 0 gave 0.5", "ForkPoolWorker-2 4402 task 1 gave 0.7"]
    swapped = ["ForkPoolWorker-1 4401 task 1 gave 0.7", "ForkPoolWorker-2 4402 task 0 gave 0.5"]
    assert Texts(evidence, evidence).compare(lines, swapped, "standard error", many=True)[0] is None
    for last in ("ForkPoolWorker-2 4402 task 0 gave 0.6", "ForkPoolWorker-3 4402 task 0 gave 0.5"):
        wrong = [swapped[0], last]
        assert Texts(evidence, evidence).compare(lines, wrong, "standard error", many=True)[0] is not None


@pytest.mark.parametrize(
    ("after", "counts"),
    [(",%d", True), (",93%d,0.5", True), (",93%d", True), (",931%d loss", True), (",93%d loss", False)],
)
def test_the_column_after_a_time_is_a_result(after: str, counts: bool) -> None:
    evidence = Evidence(began=1795657966.0, ended=1795657969.0)
    lines = [f"2026-11-26 01:52:4{at}{after % at}" for at in (7, 8)]
    number, _ = Texts(evidence, evidence).compare(lines[:1], lines[1:], "a table", many=False)
    assert (number is not None) == counts


@pytest.mark.parametrize(("after", "counts"), [(".031", False), (".032", True), (".0310", True)])
def test_milliseconds_that_logging_writes_twice_are_of_the_time(after: str, counts: bool) -> None:
    """As "%(asctime)s.%(msecs)03d" does without a datefmt."""
    evidence = Evidence(began=1795657966.0, ended=1795657969.0)
    lines = ["2026-11-26 01:52:47,015.015 loss 0.5", f"2026-11-26 01:52:48,031{after} loss 0.5"]
    number, _ = Texts(evidence, evidence).compare(lines[:1], lines[1:], "standard error", many=False)
    assert (number is not None) == counts


@pytest.mark.parametrize(
    ("one", "other", "counts"),
    [
        ("took %s s, class m", "took %s s, class d", True),
        ("took %s s, 5k rows", "took %s s, 5M rows", True),
        ("took %s s |   *", "took %s s | *", True),
        ("took %s s/it|", "took %s it/s |", False),
        ("took   %s ms", "took %s s", False),
    ],
)
def test_a_unit_and_padding_go_with_a_measured_number(one: str, other: str, counts: bool) -> None:
    sides = [Evidence(items=[Item(SITE, text, 0, 0)]) for text in ("0.5312", "0.7421")]
    number, _ = Texts(*sides).compare([one % "0.5312"], [other % "0.7421"], "standard output", many=False)
    assert (number is not None) == counts


def test_lines_of_several_processes_are_paired_by_what_is_no_measure() -> None:
    one = Evidence(
        names={"process numbers": ("5001", "5002", "5003")},
        items=[Item(SITE, text, 0, 0, process=at) for at, text in enumerate(("0.104", "0.103", "0.102"))],
    )
    other = Evidence(
        names={"process numbers": ("6001", "6002", "6003")},
        items=[Item(SITE, text, 0, 0, process=at) for at, text in enumerate(("0.105", "0.107", "0.106"))],
    )
    a = ["worker 0 pid 5001 took 0.104s", "worker 1 pid 5002 took 0.103s", "worker 2 pid 5003 took 0.102s"]
    b = ["worker 2 pid 6003 took 0.106s", "worker 0 pid 6001 took 0.105s", "worker 1 pid 6002 took 0.107s"]
    number, explained = Texts(one, other).compare(a, b, "standard output", many=True)
    assert (number, len(explained)) == (None, 6)
    wrong = [*b[:2], b[2].replace("worker 1", "worker 3")]
    [end], _ = lines_apart(Texts(one, other), a, wrong, "standard output", many=True)
    assert end.what == "a line of standard output"
    assert "worker 1" in end.told  # and not the first line of each run


def test_a_bar_is_shorter_beside_a_speed_of_more_digits() -> None:
    one, other = (Evidence(items=[Item(SITE, text, 0, 0)]) for text in ("1459.31", "715.87"))
    bars = ["\r  0%|   |\r100%|████| 30/30 [1459.31it/s]", "\r  0%|   |\r100%|█████| 30/30 [715.87it/s]"]
    number, explained = Texts(one, other).compare(bars[:1], bars[1:], "standard error", many=False)
    assert (number, len(explained)) == (None, 1)
    alone = [bar.replace("\r", "") for bar in bars]
    assert Texts(one, other).compare(alone[:1], alone[1:], "standard output", many=False)[0] == 0


def test_a_bar_that_fills_a_line_is_as_long_as_the_numbers_beside_it_leave() -> None:
    """Of Rich."""
    one, other = (Evidence(items=[Item(SITE, text, 0, 0)]) for text in ("1139.42", "594.05"))
    lines = ["Predicting ━━━╸ 2/2 0:00:00 1139.42it/s", "Predicting ━━━━╸ 2/2 0:00:00 594.05it/s"]
    number, explained = Texts(one, other).compare(lines[:1], lines[1:], "standard output", many=False)
    assert (number, len(explained)) == (None, 1)
    for wrong in (
        lines[1].replace("━╸", "━━╸"),
        lines[1].replace("━━╸", "╸"),
        lines[1].replace("2/2", "1/2"),
    ):
        assert Texts(one, other).compare(lines[:1], [wrong], "standard output", many=False)[0] == 0


def test_a_bar_of_the_same_length_that_shows_something_else_is_a_result() -> None:
    one, other = (Evidence(items=[Item(SITE, text, 0, 0)]) for text in ("1139.42", "1139.57"))
    lines = ["━━━╸ 1139.42it/s", "━━╸━ 1139.57it/s"]
    assert Texts(one, other).compare(lines[:1], lines[1:], "standard output", many=False)[0] == 0


def test_commas_in_a_row_of_a_table_are_in_no_number() -> None:
    """As in Stable-Baselines3's progress.csv: 49 episodes, 857 frames a second."""
    head, rows = "episodes,time/fps,time/time_elapsed,loss", ["49,857,1,0.125", "49,1376,0,0.125"]
    one, other = (
        Evidence(items=[Item(("whole", "dqn.py", 7, 0), float(fps), 0, 0), Item(SITE, elapsed, 0, 0)])
        for fps, elapsed in ((857, "1"), (1376, "0"))
    )
    texts = [[head, row] for row in rows]
    number, explained = Texts(one, other).compare(texts[0], texts[1], "file progress.csv", many=False)
    assert (number, [each.values for each in explained]) == (None, [("857", "1376"), ("1", "0")])
    texts[1][1] = rows[1].replace("49", "48")
    counted = [
        ["a, b, c", f"at 1,{number}, 2"] for number in ("234", "235")
    ]  # no table: a result of four digits
    sides = (Evidence(items=[Item(SITE, number, 0, 0)]) for number in ("234", "235"))
    assert Texts(*sides).compare(counted[0], counted[1], "standard output", many=False)[0] == 1
    assert Texts(one, other).compare(texts[0], texts[1], "file progress.csv", many=False)[0] == 1


def test_a_measured_number_may_be_that_of_the_process_too() -> None:
    one = Evidence(names={"process numbers": ("659",)}, items=[Item(SITE, "659", 0, 0)])
    other = Evidence(names={"process numbers": ("661",)}, items=[Item(SITE, "20", 0, 0)])
    for line, counts in (("20", None), ("21", 0)):
        found = Texts(one, other).compare(["at 659 ms"], [f"at {line} ms"], "standard output", many=False)
        assert found[0] == counts


def of_turns(texts: Sequence[str], kind: str = "text") -> list[Item]:
    """Return what a line of a program gave."""
    site, last = (kind, "train.py", 3, 0), len(texts) - 1
    return [
        Item(site, text if kind == "text" else float(text), at, last - at) for at, text in enumerate(texts)
    ]


def short_times(turns: int) -> tuple[list[str], list[str]]:
    draw = random.Random(turns)
    one, other = ([f"{draw.uniform(0.1, 0.4):.2f}" for _ in range(turns)] for _ in range(2))
    return one, other


@pytest.mark.parametrize("turns", [12, 900, 5000])
def test_a_result_in_a_file_is_none_of_the_times_on_a_stream(turns: int) -> None:
    """Of many short times some two are like any result."""
    times = short_times(turns)
    texts = Texts(*(Evidence(items=of_turns(each)) for each in times))
    logs = [[f"step {at} took {time} s" for at, time in enumerate(each)] for each in times]
    assert texts.compare(logs[0], logs[1], "standard output", many=False)[0] is None
    for one, other in [*zip(*times, strict=True)][:: turns // 12]:
        if one != other:
            lines = [[f"accuracy {each}"] for each in (one, other)]
            assert texts.compare(lines[0], lines[1], "a file", many=False)[0] == 0
    again = [[line.replace("step", "INFO step") for line in log] for log in logs]
    assert texts.compare(again[0], again[1], "a file", many=False)[0] is None


@pytest.mark.parametrize("kind", ["text", "value"])
def test_in_a_long_log_of_short_times_each_result_counts(kind: str) -> None:
    times = short_times(2000)
    sides = [Evidence(items=of_turns(each, kind)) for each in times]
    scores = short_times(2001)[0]
    logs = [[f"step {at} took {time} s score {scores[at]}" for at, time in enumerate(each)] for each in times]
    assert Texts(*sides).compare(logs[0], logs[1], "standard output", many=False)[0] is None
    for seed in range(max(EXAMPLES // 25, 2)):
        draw = random.Random(seed)
        at = draw.randrange(2000)
        changed = draw.choice([time for time in times[1] if time != scores[at]])
        lines = [*logs[1]]
        lines[at] = f"step {at} took {times[1][at]} s score {changed}"
        assert Texts(*sides).compare(logs[0], lines, "standard output", many=False)[0] is not None, seed


def test_a_line_with_several_short_times_of_one_place_has_columns_however_it_is_aligned() -> None:
    draw = random.Random(5)
    times = [[f"{draw.uniform(0, 0.008):.3f}" for _ in range(72)] for _ in range(2)]
    sides = [Evidence(items=of_turns(each)) for each in times]
    logs = [[f"[{100 * at // 11:>3}%]  data {each[6 * at + 4]}" for at in range(12)] for each in times]
    assert Texts(*sides).compare(logs[0], logs[1], "standard output", many=False)[0] is None
    logs[1][7] = "[ 63%]  data 0.009"
    assert Texts(*sides).compare(logs[0], logs[1], "standard output", many=False)[0] is not None


@pytest.mark.parametrize("kind", ["text", "value"])
def test_a_result_among_many_places_times_of_its_size(kind: str) -> None:
    """Of 2,300 such results, 312 were taken for times before."""
    draw = random.Random(7)
    hidden = tried = 0
    for places, turns, form in product((1, 5, 20, 60), (1, 15), (".2f", ".3f", ".4f") * 20):
        drawn = [[f"{draw.uniform(0.1, 0.2):{form}}" for _ in range(places * turns + 1)] for _ in range(2)]
        sides = [
            Evidence(
                items=[
                    replace(item, site=(kind, "train.py", place, 0))
                    for place in range(places)
                    for item in of_turns(each[place * turns : (place + 1) * turns], kind)
                ]
            )
            for each in drawn
        ]
        if drawn[0][-1] != drawn[1][-1]:
            lines = [[f"score {each[-1]}"] for each in drawn]
            tried += 1
            hidden += Texts(*sides).compare(lines[0], lines[1], "standard output", many=False)[0] is None
    assert hidden <= 0.02 * tried, (hidden, tried)


@pytest.mark.parametrize("more", ["", "17"])
def test_a_result_is_none_of_900_times_that_print_as_100_numbers(more: str) -> None:
    """At one of so many turns some are like any two results; longer ones are, if they are cut off."""
    times = [[f"{0.1 + at * step % 100 / 1000:.3f}{more}" for at in range(900)] for step in (37, 53)]
    sides = [Evidence(items=of_turns(each)) for each in times]
    for one, other in [*zip(*times, strict=True)][1:49:7]:
        assert (
            Texts(*sides).compare([f"score {one[:5]}"], [f"score {other[:5]}"], "a file", many=False)[0] == 0
        )


def test_one_time_may_be_written_in_several_ways() -> None:
    sides = [Evidence(items=of_turns([text], "value")) for text in ("0.04218", "0.05371")]
    lines = [
        ["took 0.042 s, 4.22e-02 s, 0.0422, in all 0.0422"],
        ["took 0.054 s, 5.37e-02 s, 0.0537, in all 0.0537"],
    ]
    assert Texts(*sides).compare(lines[0], [lines[0][0]], "a file", many=False)[0] is None
    lines = [
        [f"took {one} s, again {two} s" for one, two in pairs]
        for pairs in ([("0.042", "0.042")], [("0.054", "0.054")])
    ]
    assert Texts(*sides).compare(lines[0], lines[1], "a file", many=False)[0] is None
    apart = [["took 0.042 s", "accuracy 0.042"], ["took 0.054 s", "accuracy 0.054"]]
    assert Texts(*sides).compare(apart[0], apart[1], "a file", many=False)[0] == 1


@pytest.mark.parametrize(("cut", "counts"), [("0.042", True), ("0.0421", False), ("0.0422", True)])
def test_a_time_may_be_cut_off_after_some_digits(cut: str, counts: bool) -> None:
    """As by str(seconds)[:6]; of which three digits tell it from chance."""
    sides = [Evidence(items=of_turns([text])) for text in ("0.04218", "0.05371")]
    number, _ = Texts(*sides).compare([f"took {cut}"], ["took 0.0537"], "a file", many=False)
    assert (number is not None) == counts


def test_the_sign_of_a_measured_difference_goes_with_it() -> None:
    sides = [Evidence(items=of_turns([text])) for text in ("-4.218", "5.371")]
    lines = [["faster by -4.218 s"], ["faster by 5.371 s"]]
    assert Texts(*sides).compare(lines[0], lines[1], "a file", many=False)[0] is None
    assert Texts(*sides).compare(["loss -1 in 4.218 s"], ["loss 1 in 5.371 s"], "a file", many=False)[0] == 0


TABLE = [
    f"{kind} {n:4} {how:>7} 0.{n}1 %s" for kind in ("light", "heavy") for n in (50, 200) for how in "abc"
]


@pytest.mark.parametrize("changed", [None, 0, 5, 11])
def test_in_a_table_of_many_words_a_column_of_times_is_told_from_a_result(changed: int | None) -> None:
    """Each row has words of its own, so no two have one form."""
    sides = []
    for number in (1, 2):
        times = [0.000317 * (7 * at % 11 + number + 1) for at in range(len(TABLE) + 8)]
        items = [Item(("value", "study.py", 8, 0), each, at, 19 - at) for at, each in enumerate(times)]
        sides.append((Evidence(items=items), [row % f"{times[at]:.6f}" for at, row in enumerate(TABLE)]))
    one, other = (lines for _, lines in sides)
    if changed is not None:
        other[changed] = other[changed][:-1] + str((int(other[changed][-1]) + 3) % 10)
    number_of, _ = Texts(sides[0][0], sides[1][0]).compare(one, other, "standard output", many=False)
    assert (number_of is None) == (changed is None)


@pytest.mark.parametrize(("score", "counts"), [("0.0513", False), ("0.0514", True), ("0.0813", True)])
def test_a_time_of_three_digits_may_be_written_twice(score: str, counts: bool) -> None:
    site = ("value", "store.py", 3, 0)
    sides = [Evidence(items=[Item(site, value, 0, 0)]) for value in (0.0800, 0.05134)]
    one, other = ["loss 1.5 0.0800", "norm 2.5 0.0800"], ["loss 1.5 0.0513", f"norm 2.5 {score}"]
    found, _ = Texts(*sides).compare(one, other, "standard output", many=False)
    assert (found == 1) == counts


@pytest.mark.parametrize(("printed", "counts"), [("4.268309116363525", False), ("4.268329143524170", True)])
def test_a_sum_of_times_by_torch_has_single_precision(printed: str, counts: bool) -> None:
    site = ("value", "train.py", 3, 0)
    sides = [
        Evidence(items=[Item(site, sum_ / 2, at, 1 - at) for at in (0, 1)] + [Item(site, sum_, 2, 0)])
        for sum_ in (2.90206140001, 4.26830920001)
    ]
    one, other = ["total 2.9020614624023438"], [f"total {printed}"]
    found, _ = Texts(*sides).compare(one, other, "standard output", many=False)
    assert (found == 0) == counts


@pytest.mark.parametrize(
    ("kind", "lines", "counts"),
    [
        ("message 0", ("size 3", "size 4"), False),
        ("printed 0", ("size 3", "size 4"), True),
        ("printed 0", ("took 3 s", "took 4 s"), False),
        ("maybe message 0", ("size 3", "size 4"), True),
        ("maybe message 0|message 0", ("size 3", "size 4"), False),
    ],
)
def test_a_short_number_at_its_place_in_a_printed_line(
    kind: str, lines: tuple[str, str], counts: bool
) -> None:
    kinds = (kind.split("|") * 2)[:2]
    sides = [
        Evidence(messages={line: [(5, 6, Item((each, "train.py", 3, 0), line, 0, 20))]})
        for each, line in zip(kinds, lines, strict=True)
    ]
    found, _ = Texts(*sides).compare([lines[0]], [lines[1]], "standard output", many=False)
    assert (found == 0) == counts


@pytest.mark.parametrize(
    ("one", "other", "counts"),
    [
        ("[12:00:02] INFO loss 0.51", "           INFO loss 0.51", False),
        ("           INFO loss 0.51", "[12:00:12] INFO loss 0.51", False),
        ("[12:00:02] INFO loss 0.51", "           INFO loss 0.52", True),
        ("[12:00:02] INFO loss 0.51", "   INFO loss 0.51", True),
        ("[12:09:02] INFO loss 0.51", "           INFO loss 0.51", True),
        ("        12 INFO loss 0.51", "           INFO loss 0.51", True),
    ],
)
def test_a_log_may_leave_out_the_time_of_the_line_before(one: str, other: str, counts: bool) -> None:
    sides = [Evidence(began=1927627201.0 + 10 * at, ended=1927627204.0 + 10 * at) for at in (0, 1)]
    found, _ = Texts(*sides).compare([one], [other], "standard output", many=False)
    assert (found == 0) == counts


@pytest.mark.parametrize(
    ("values", "line", "counts"),
    [
        ((3.0, 4.0), "survival time {:.0f}", True),
        ((3.1, 4.2), "survival time {:.1f}", True),
        ((3.684, 3.113), "mean {:.2f} ms", False),
        ((3.684, 3.113), "score {:.2f}", False),
    ],
)
def test_a_short_result_is_none_of_what_is_seldom_made(
    values: tuple[float, float], line: str, counts: bool
) -> None:
    """Such as a mean in milliseconds: of many such numbers some are like any of two digits."""
    site = ("value mean in milliseconds", "train.py", 3, 0)
    sides = [Evidence(items=[Item(site, value, 0, 0)]) for value in values]
    lines = [line.format(value) for value in values]
    found, _ = Texts(*sides).compare([lines[0]], [lines[1]], "a file", many=False)
    assert (found == 0) == counts


@pytest.mark.parametrize(("told", "counts"), [("mean fit time", False), ("mean score", True)])
def test_a_mean_of_some_times_needs_a_word_where_it_has_few_digits(told: str, counts: bool) -> None:
    """As of the folds of one search, where another follows."""
    site = ("value", "search.py", 3, 0)
    times = [[0.103, 0.242, 0.117, 0.385, 0.216], [0.091, 0.157, 0.302, 0.118, 0.273]]
    sides = [Evidence(items=[Item(site, each, at, 4 - at) for at, each in enumerate(run)]) for run in times]
    lines = [f"{told} {sum(run[:3]) / 3:.3f}" for run in times]
    found, _ = Texts(*sides).compare([lines[0]], [lines[1]], "standard output", many=False)
    assert (found == 0) == counts


def test_a_file_may_be_called_after_several_drawn_names() -> None:
    names = [uuid4().hex for _ in range(2)]
    one, other = (Evidence(names={"uuids": (name,)}, began=1.8e9, ended=1.8e9 + 9) for name in names)
    left, right = ([f"wrote 0001_{name}_final.json"] for name in names)
    number, found = Texts(one, other).compare(left, right, "standard output", many=False)
    assert (number, [each.kind for each in found]) == (None, ["drawn name"])
    assert Texts(one, Evidence()).compare(left, right, "standard output", many=False)[0] == 0


def live(times: Sequence[float], order: Sequence[int], scores: Sequence[float]) -> list[str]:
    return [f"fold {at}: auc={scores[at]} | pid={4400 + n} | {times[at]}s" for n, at in enumerate(order)]


@pytest.mark.parametrize("where", ["standard error", "file /out/train.log", "file /out/scores.csv"])
def test_lines_with_a_time_may_come_as_work_ends(where: str) -> None:
    """As a program that goes through its tasks by ``as_completed`` logs them."""
    scores = (0.71, 0.69, 0.73)
    names = {"process numbers": ("4400", "4401", "4402")}
    one = live((0.16, 0.37, 0.21), (0, 1, 2), scores)
    runs = [
        FasterRun(
            times,
            {where: live((16.2 * times / 100, 37.1 * times / 100, 22.4 * times / 100), (1, 0, 2), scores)},
        )
        for times in PACES
    ]
    sides = [Evidence(names=names, several=True) for _ in range(2)]
    texts = Texts(sides[0], sides[1], faster=runs)
    number, found = texts.compare(one, live((0.18, 0.31, 0.24), (2, 0, 1), scores), where, many=False)
    assert (number is None) == (not where.endswith(".csv"))
    assert number is not None or found[-1].kind == "order of lines that have a time"
    other = live((0.18, 0.31, 0.24), (2, 0, 1), (0.71, 0.68, 0.73))
    assert texts.compare(one, other, where, many=False)[0] is not None
    head = ["best is 0.73", "start"]
    swapped = texts.compare(
        head + one, head[::-1] + live((0.18, 0.31, 0.24), (2, 0, 1), scores), where, many=False
    )
    assert swapped[0] == 0  # they have no time
    alone = Texts(Evidence(names=names), Evidence(names=names), faster=runs)  # a loop in an order of its own
    assert alone.compare(one, live((0.18, 0.31, 0.24), (2, 0, 1), scores), where, many=False)[0] is not None


@pytest.mark.parametrize("result", [False, True])
def test_short_numbers_of_rows_that_a_time_sorts_are_known_by_the_long_one_beside_them(result: bool) -> None:
    """The share of a time stands at the turn of its row. One that no place gave is a result."""
    tables = (
        [("read", 4.859097, 6.96), ("model", 7.537331, 10.81)],
        [("model", 3.926275, 4.73), ("read", 9.021974, 10.86)],
    )
    lines: list[list[str]] = []
    sides: list[Evidence] = []
    for table in tables:
        items = [
            Item(("value", "train.py", line, 0), value, turn, 1 - turn)
            for turn, (_, spent, share) in enumerate(table)
            for line, value in ((3, spent), (4, share))
        ]
        sides.append(Evidence(items=items))
        lines.append([f"{name}: {spent:.6f}ms ({share:.2f}%)" for name, spent, share in sorted(table)])
    if result:
        lines[1][1] = lines[1][1].replace("10.86", "10.83")
    number, _ = Texts(*sides).compare(lines[0], lines[1], "file log.txt", many=False)
    assert number == (1 if result else None)


def test_a_worker_may_log_a_time_at_another_turn_than_in_the_other_run() -> None:
    sides, lines = [], []
    for spent, at in (("0.028", 3), ("0.039", 1)):
        message = f"task 4 finished in {spent} s"
        item = Item(("message 1", "pool.py", 7, 0), message, at, 8 - 2 * at, at)
        sides.append(Evidence(messages={message: [(19, 24, item)]}))
        lines.append([f"worker: {message}"])
    assert Texts(*sides).compare(lines[0], lines[1], "standard output", many=False)[0] is None
    plain = [Evidence(), sides[1]]
    assert Texts(*plain).compare(lines[0], lines[1], "standard output", many=False)[0] == 0


@pytest.mark.parametrize(("other", "known"), [("99e2d", True), ("99e2e", False)])
def test_the_first_digits_of_a_uuid_are_a_short_name(other: str, known: bool) -> None:
    uuids = ("1b0e04d3a1f24c8e9d1b2c3d4e5f6a7b", "99e2d4d3a1f24c8e9d1b2c3d4e5f6a7b")
    sides = [Evidence(names={"uuids": (each,)}) for each in uuids]
    lines = [f"result for train_{each}_00000: loss 0.4883" for each in ("1b0e0", other)]
    found, _ = Texts(*sides).compare(lines[:1], lines[1:], "standard output", many=False)
    assert (found is None) is known


def test_a_date_behind_a_word_and_a_colon_is_one() -> None:
    sides = [Evidence(began=1795919000.0 + at, ended=1795919001.0 + at) for at in (0, 5)]
    lines = [f"DT:{datetime.fromtimestamp(1795919000 + at, UTC):%Y-%m-%dT%H:%M:%S}" for at in (0, 5)]
    assert Texts(*sides).compare(lines[:1], lines[1:], "file NA001.sam", many=False)[0] is None
    late = lines[0].replace(":2026", ":2027")
    assert Texts(*sides).compare(lines[:1], [late], "file NA001.sam", many=False)[0] == 0


@pytest.mark.parametrize(("written", "known"), [("21519.0", True), ("21519.5", False), ("21520.0", False)])
def test_a_process_number_may_be_written_as_a_float(written: str, known: bool) -> None:
    sides = [Evidence(names={"process numbers": (each,)}) for each in ("21513", "21519")]
    found, _ = Texts(*sides).compare(["0,0.16,21513.0"], [f"0,0.16,{written}"], "file a.csv", many=False)
    assert (found is None) is known
