"""Tests of what runs with faster clocks tell of a number."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from reprobuild.twice import faster_clocks, runs
from reprobuild.twice.derived_items import Item
from reprobuild.twice.evidence import Evidence
from reprobuild.twice.faster_clocks import BY_DIGITS, GROWN, PACES, FasterRun, GrownTimes, is_time, stays
from reprobuild.twice.line_numbers import LineNumber, line_numbers
from reprobuild.twice.recorded_run import (
    Comparison,
    HowToRun,
    faster_runs,
    recorder_settings,
    run_once,
)
from reprobuild.twice.report import verdict
from support.twice import compared, recorded, scratch_below


@pytest.mark.parametrize(
    ("pair", "grown"),
    [
        (("0.31", "0.35"), ("33.8", "331.0")),
        (("0.0", "0.1"), ("4.1", "44.9")),  # too short for its digits
        (("0.0", "0.001"), ("0.04", "0.419")),  # rounded to three decimals
        (("312", "355"), ("32115", "308020")),  # whole milliseconds
        (("49", "12"), ("3104", "27002")),
        (("1:03", "1:04"), ("1:44:11", "17:41:00")),
        (("812.34", "790.11"), ("8.71", "0.80")),  # steps a second
        (("14:05", "14:06"), ("14:46", "21:01")),  # a time of day that is yet to come
        (("23:59:58", "23:59:59"), ("00:04:40", "00:49:55")),
        (("3.1e-05", "3.3e-05"), ("0.0032", "0.0318")),
        (("0.31", "0.35"), ("280.8", "331.0")),  # the machine was busy
    ],
)
def test_a_time_grows_with_the_clocks(pair: tuple[str, str], grown: tuple[str, str]) -> None:
    assert is_time(pair, list(zip(PACES, grown, strict=True)))


@pytest.mark.parametrize(
    ("pair", "grown"),
    [
        (("0.31", "0.35"), ("0.33", "0.30")),  # a result that varies
        (("0.31", "0.35"), ("0.31", "201.0")),  # or varies much
        (("0.31", "0.35"), ("33.8", "4.8")),
        (("0.31", "0.35"), ("480.8", "40.0")),  # it does not go on growing
        (("2.3026", "2.3031"), ("2.3526", "2.8026")),  # computed with a time: it grows, but not as much
        (("3", "4"), ("310", "3011")),  # how often a while was over
        (("81234", "79011"), ("811", "80")),  # what was done until one was
        (("0.0", "0.1"), ("0.1", "0.0")),
        (("0.00", "0.0"), ("0.01", "0.0106")),
        (("1:03", "1:04"), ("1:03", "1:05")),
        (("14:05", "14:06"), ("14:08", "14:06")),
        (("1e400", "1e401"), ("1e402", "1e403")),
        (("0.31", "0.35"), ()),
    ],
)
def test_a_result_does_not(pair: tuple[str, str], grown: tuple[str, ...]) -> None:
    assert not is_time(pair, list(zip(PACES, grown, strict=False)))


def test_few_whole_seconds_are_a_time_where_the_words_beside_them_say_so() -> None:
    """Of a script: ``took $(( $(date +%s) - t0 ))s``."""
    for pair, grown in ((("0", "1"), ("55", "612")), (("3", "4"), ("310", "3011"))):
        texts = list(zip(PACES, grown, strict=True))
        assert is_time(pair, texts, of_measure=True)
        assert not is_time(pair, texts)
    assert not is_time(("3", "4"), list(zip(PACES, ("3", "5"), strict=True)), of_measure=True)


def test_no_number_that_is_the_same_in_all_runs_but_for_noise_is_a_time() -> None:
    drawn = random.Random(3)
    for _ in range(5000):
        value = 10 ** drawn.uniform(-4, 5)
        many, strip = drawn.randrange(1, 7), drawn.random() < 0.5
        values = [round(value * drawn.uniform(0.2, 5), many) for _ in range(4)]
        texts = [
            f"{each:f}".rstrip("0") + "0" * each.is_integer() if strip else f"{each:.{many}f}"
            for each in values
        ]
        grown = list(zip(PACES, texts[2:], strict=True))
        assert not is_time((texts[0], texts[1]), grown), texts
        assert stays((texts[0], texts[1]), grown) or min(map(float, texts)) < 1, texts


@pytest.mark.parametrize(
    ("grown", "known"),
    [
        (("0.41", "0.22"), False),
        (("33.8", "331.0"), True),
        (("0.41", "11.0"), None),
        (("2.1", "30.1"), None),  # the machine may have been busy in the other runs
    ],
)
def test_what_neither_grows_nor_stays_is_not_known(grown: tuple[str, str], known: bool | None) -> None:
    found = GrownTimes(faster(*grown), ["0.31"], "standard output").are_times(
        ("0.31", "0.35"), ("0.31", "0.35")
    )
    assert found is known


def test_what_differs_much_by_itself_may_be_a_time_of_a_busy_machine() -> None:
    assert not stays(("0.002", "0.119"), list(zip(PACES, ("0.3", "2.2"), strict=True)))


def faster(*texts: str) -> list[FasterRun]:
    return [
        FasterRun(times, {"standard output": text.split("\n")})
        for times, text in zip(PACES, texts, strict=True)
    ]


def test_a_line_is_found_by_its_form_and_its_turn() -> None:
    one = ["epoch 1 loss 0.91 took 0.2 s", "saved", "epoch 2 loss 0.71 took 0.3 s"]
    found = faster(
        "epoch 1 loss 0.91 took 23.1 s\nsaved\nepoch 2 loss 0.71 took 27.0 s",
        "epoch 1 loss 0.91 took 225.1 s\nsaved\nepoch 2 loss 0.71 took 281.7 s",
    )
    grown = GrownTimes(found, one, "standard output")
    other = "epoch 2 loss 0.72 took 0.4 s"
    assert grown.are_times(("0.3", "0.4"), (one[2], other))
    assert not grown.are_times(("0.71", "0.72"), (one[2], other))
    assert grown.are_times(("0.3", "0.4"), (one[2], other + " now")) is None
    assert GrownTimes(found, one, "standard error").are_times(("0.3", "0.4"), (one[2], other)) is None
    fewer = [FasterRun(run.times, {"standard output": run.texts["standard output"][1:]}) for run in found]
    assert GrownTimes(fewer, one, "standard output").are_times(
        ("0.3", "0.4"), (one[2], other)
    )  # by its numbers
    other = "epoch 3 loss 0.72 took 0.4 s"
    assert GrownTimes(fewer, one, "standard output").are_times(("0.3", "0.4"), (one[2], other)) is None


def many(*lines: str) -> str:
    return "\n".join(lines)


def test_a_time_of_day_that_is_the_same_by_any_clock_is_a_result() -> None:
    one, other = "last seen 2024-05-01T18:49:53Z", "last seen 2024-05-01T18:49:54Z"
    grown = GrownTimes(faster(one, other), [one], "standard output")
    site = ("value", "people.py", 3, 0)
    assert grown.are_times(("18:49:53", "18:49:54"), (one, other), sites={site}) is False


def test_a_line_is_found_whatever_two_words_its_run_is_called_by() -> None:
    def named(name: str, seconds: str) -> tuple[str, Evidence]:
        return f"[{name}] took {seconds} s", Evidence(names={"drawn names": (name,)})

    (one, a), (other, b) = named("evil_euler", "0.2"), named("sly_bose", "0.3")
    drawn = (named("calm_curie", "25.0"), named("wise_fermi", "251.0"))
    runs = [
        FasterRun(times, {"standard output": [line]}, evidence)
        for times, (line, evidence) in zip(PACES, drawn, strict=True)
    ]
    grown = GrownTimes(runs, [one], "standard output", [other], (a, b))
    assert grown.are_times(("0.2", "0.3"), (one, other))
    assert GrownTimes(runs, [one], "standard output", [other]).are_times(("0.2", "0.3"), (one, other)) is None


def test_a_line_is_read_once_for_all_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for the ratios of the times in it."""
    read = list[str]()

    def counted(line: str) -> list[LineNumber]:
        read.append(line)
        return line_numbers(line)

    monkeypatch.setattr(faster_clocks, "line_numbers", counted)
    lines = [
        "took " + " ".join(f"{factor * (at + 1) / 7:.5f}" for at in range(200))
        for factor in (1, 1.1, 100, 1000)
    ]
    runs = faster(*lines[2:])
    grown = GrownTimes(runs, lines[:1], "standard output", lines[1:2])
    for pair in zip(*(line.split()[1:] for line in lines[:2]), strict=True):
        assert grown.are_times(pair, (lines[0], lines[1]))
    many = 2 + len(runs)
    assert len(read) <= 3 * many, len(read)  # by itself, for what its column does, and for its ratios


def test_decimals_with_an_exponent_are_no_drawn_name() -> None:
    one, other = "best: 5.256626984191826e-05", "best: 5.309472031512996e-05"
    runs = faster("best: 0.005212502", "best: 0.05309472")
    pair = (one.split()[1], other.split()[1])
    assert GrownTimes(runs, [one], "standard output").are_times(pair, (one, other))


def test_a_line_of_another_worker_is_found_by_the_numbers_that_are_equal() -> None:
    one = ["fold 0 auc 0.71 took 0.1 s", "fold 1 auc 0.69 took 0.4 s"]
    runs = faster(
        many("fold 1 auc 0.69 took 31.2 s", "fold 0 auc 0.71 took 12.0 s"),
        many("fold 1 auc 0.69 took 312.5 s", "fold 0 auc 0.71 took 100.7 s"),
    )
    grown = GrownTimes(runs, one, "standard output")
    assert grown.are_times(("0.1", "0.2"), (one[0], "fold 0 auc 0.71 took 0.2 s"))
    assert not grown.are_times(("0.71", "0.72"), (one[0], "fold 0 auc 0.72 took 0.1 s"))


def test_a_unit_changes_with_the_size_of_a_time() -> None:
    one, other = "[CV 1/3] score=0.97 total time=   0.1s", "[CV 1/3] score=0.97 total time=   0.2s"
    runs = faster("[CV 1/3] score=0.97 total time=  13.3s", "[CV 1/3] score=0.97 total time= 1.8min")
    assert GrownTimes(runs, [one], "standard output").are_times(("0.1", "0.2"), (one, other))
    runs = faster("[CV 1/3] score=0.97 total time=  13.3s", "[CV 1/3] score=0.97 total time= 1.8 m")
    assert GrownTimes(runs, [one], "standard output").are_times(("0.1", "0.2"), (one, other)) is None


def test_a_rate_is_known_by_the_last_state_of_a_bar() -> None:
    bar = "9/9 [00:0{}<00:00,  {}]"
    one, other = bar.format(2, "4.10it/s"), bar.format(3, "3.60it/s")
    first = "\r0/9 [00:00<?, ?it/s]\r"
    runs = faster(f"{first}9/9 [03:39<00:00, 24.39s/it]", f"{first}9/9 [36:35<00:00, 243.90s/it]")
    grown = GrownTimes(runs, [first + one], "standard output")
    assert grown.are_times(("4.10", "3.60"), (one, other), of_measure=True)
    runs = faster(f"{first}9/9 [03:39<00:00, 4.20it/s]", f"{first}9/9 [36:35<00:00, 4.90it/s]")
    grown = GrownTimes(runs, [first + one], "standard output")
    assert not grown.are_times(("4.10", "3.60"), (one, other), of_measure=True)


def test_what_a_step_takes_is_told_in_any_unit() -> None:
    bar = "281/281 [====] - {} - loss: 0.0117"
    one, other = bar.format("0s 188us/step"), bar.format("0s 186us/step")
    runs = faster(bar.format("5s 19ms/step"), bar.format("53s 188ms/step"))
    assert GrownTimes(runs, [one], "standard output").are_times(("188", "186"), (one, other), of_measure=True)
    runs = faster(bar.format("5s 190us/step"), bar.format("53s 188us/step"))
    assert not GrownTimes(runs, [one], "standard output").are_times(
        ("188", "186"), (one, other), of_measure=True
    )


def test_minutes_and_seconds_are_one_time() -> None:
    """As PyTorch's tutorials print the time that has passed and is left."""
    form = "Epoch: 2 loss 74.1256 {} (- {})"
    one, other = form.format("0m 1s", "0m 2s"), form.format("0m 1s", "0m 0s")
    runs = faster(form.format("1m 9s", "2m 5s"), form.format("15m 9s", "22m 5s"))
    assert GrownTimes(runs, [one], "standard output").are_times(("2", "0"), (one, other))
    runs = faster(form.format("1m 9s", "0m 2s"), form.format("15m 9s", "0m 1s"))
    assert not GrownTimes(runs, [one], "standard output").are_times(("2", "0"), (one, other))


def test_a_difference_may_have_another_sign() -> None:
    one, other = "memory +0.001 GB", "memory -0.002 GB"
    runs = faster("memory -0.112 GB", "memory +1.207 GB")
    assert GrownTimes(runs, [one], "standard output").are_times(("0.001", "0.002"), (one, other))
    runs = faster("memory -0.001 GB", "memory +0.002 GB")
    assert GrownTimes(runs, [one], "standard output").are_times(("0.001", "0.002"), (one, other)) is False


def test_commas_between_thousands_are_part_of_a_number() -> None:
    one, other = "test_lu  0.2935  2,770.855  7", "test_lu  0.3160  2,595.303  7"
    runs = faster("test_lu  29.3501  27.708  7", "test_lu  294.3500  2.771  7")
    grown = GrownTimes(runs, [one], "standard output")
    assert grown.are_times(("0.2935", "0.3160"), (one, other))
    assert grown.are_times(("2,770.855", "2,595.303"), (one, other))
    rows = "12,770,855", "12,595,855"  # three numbers
    runs = faster("12,771,855", "12,772,855")
    assert not GrownTimes(runs, [rows[0]], "standard output").are_times(("770", "595"), rows)


DEVIATIONS = [(0.0987, 0.168, 1.10), (0.0102, 0.798, 6.10), (0.0021, 0.305, 4.90), (0.0051, 0.497, 3.67)]
"""Of times of a few folds, in a run as it is and with faster clocks: the first began slowly."""


@pytest.mark.parametrize("form", ["svc {}: {} +- {} s", "{},{},{}"])
def test_a_deviation_of_times_is_known_by_those_in_its_column(form: str) -> None:
    head = [] if "svc" in form else ["C,score,std_fit_time"]
    one, *runs = (
        many(*head, *(form.format(at, 0.9 + at / 100, each[run]) for at, each in enumerate(DEVIATIONS)))
        for run in range(3)
    )
    lines = one.split("\n")
    first = lines[len(head)]
    grown = GrownTimes(faster(*runs), lines, "standard output")
    assert grown.are_times(("0.0987", "0.0870"), (first, first.replace("0.0987", "0.0870")))
    assert not is_time(("0.0987", "0.0870"), [(100, "0.168"), (1000, "1.10")])
    assert not grown.are_times(("0.9", "0.8"), (first, first.replace("0.9,", "0.8,").replace("0.9 ", "0.8 ")))


def test_a_result_in_a_column_of_times_counts() -> None:
    """As in a table with a row for each measure."""
    rows = [("0.1021", "9.87", "101.2"), ("0.2104", "22.1", "201.9"), ("0.1523", "15.9", "160.1")]
    rows.append(("0.9731", "0.9702", "0.9735"))
    one, *runs = (many(*(f'"value": {each[run]},' for each in rows)) for run in range(3))
    lines = one.split("\n")
    grown = GrownTimes(faster(*runs), lines, "standard output")
    assert grown.are_times(("0.1021", "0.1117"), (lines[0], lines[0].replace("0.1021", "0.1117")))
    assert not grown.are_times(("0.9731", "0.9744"), (lines[3], lines[3].replace("0.9731", "0.9744")))
    rows.append(("0.815", "0.815", "0.815"))  # a result that repeats: it is no column of times
    noisy = (0.0987, 0.168, 1.10)
    one, *runs = (many(*(f'"value": {each[run]},' for each in (noisy, *rows))) for run in range(3))
    lines = one.split("\n")
    grown = GrownTimes(faster(*runs), lines, "standard output")
    assert not grown.are_times(("0.0987", "0.0870"), (lines[0], lines[0].replace("0.0987", "0.0870")))


def test_a_drawn_name_does_not_hide_what_stands_beside_it() -> None:
    one, other = (f"run {each}: 0.{at} s" for at, each in enumerate((uuid4(), uuid4()), 3))
    runs = faster(f"run {uuid4()}: 38.1 s", f"run {uuid4().hex}: 380.1 s")
    assert GrownTimes(runs, [one], "standard output").are_times(("0.3", "0.4"), (one, other))


def test_of_equal_texts_in_a_line_all_have_to_be_times() -> None:
    runs = faster("0.3 0.3", "38.0 380.0")
    assert not GrownTimes(runs, ["0.3 0.3"], "standard output").are_times(
        ("0.3", "0.4"), ("0.3 0.3", "0.4 0.4")
    )
    runs = faster("38.0 38.0", "380.0 380.0")
    assert GrownTimes(runs, ["0.3 0.3"], "standard output").are_times(("0.3", "0.4"), ("0.3 0.3", "0.4 0.4"))


# An array's numbers are what those of NumPy, torch and databases are to the recorder: not followed.
PROGRAM = """
import json, sys, time
from datetime import datetime, timedelta
from array import array
def plain(value):
    return array("d", [value])[0]
began, day = time.perf_counter(), datetime.now()
time.sleep(0.02)
took = plain(time.perf_counter() - began)
used = plain((datetime.now() - day).total_seconds())
draw = {draw}
print("took %.4g and %.2f, %.1f a second, loss %.9f" % (took, used, 1 / took, {loss}))
path = datetime.now().strftime("result-%Y%m%d-%H%M%S.json")
json.dump([took * 1000 / 3, {loss}, [took, used]], open(path, "w"))
"""


FILE = "line 1 of file /out/result-<time of day>.json"


def of_program(tmp_path: Path, loss: str, draw: str = "0", how: HowToRun | None = None) -> Comparison:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(loss=loss, draw=draw))
    return compared(sys.executable, [str(program)], tmp_path, how=how or HowToRun(trace=False))


def test_times_that_no_record_follows_are_no_results(tmp_path: Path) -> None:
    found = of_program(tmp_path, "0.25")
    assert verdict(found) == "text", found.ends
    assert GROWN in {each.kind for each in found.texts}


@pytest.mark.parametrize(
    ("loss", "draw"),
    [
        ("draw", "__import__('secrets').randbelow(10**6) / 1e6"),  # of no clock
        ("0.5 + took", "0"),  # of a clock, but no time
        ("0.5 + took ** 0.5", "0"),
        ("(time.time_ns() // 1000) % 1000 / 1000", "0"),
    ],
)
def test_a_result_beside_such_times_counts(tmp_path: Path, loss: str, draw: str) -> None:
    found = of_program(tmp_path, loss, draw)
    assert [end.what for end in found.ends] == [
        "line 1 of standard output",
        FILE,
    ]


def test_faster_clocks_are_an_experiment_that_can_be_refused(tmp_path: Path) -> None:
    assert of_program(tmp_path, "0.25", how=HowToRun(trace=False, experiments=0)).ends


def test_a_run_with_faster_clocks_that_is_interrupted_leaves_the_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faster_runs(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "faster_runs", faster_runs)
    found = of_program(tmp_path, "0.25", how=HowToRun(vary=("listing",), cost=True))
    assert (verdict(found), found.stopped, found.cause, found.plain) == (
        "parts", "it was interrupted", None, None,
    )  # fmt: skip


def test_a_long_program_is_not_run_again_for_the_digits_of_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "LONG", 0)
    monkeypatch.setattr(runs, "faster_runs", lambda *_: pytest.fail("it was run again"))
    program = tmp_path / "program.py"
    program.write_text(
        "import os, time\nbegan = time.perf_counter()\ntime.sleep(0.15 + os.getpid() % 7 / 100)\n"
        "print('ended after %.3f' % (time.perf_counter() - began + time.process_time()))\n"
    )
    found = compared(sys.executable, [str(program)], tmp_path, how=HowToRun(times=4, trace=False))
    assert verdict(found) == "text", found.ends
    assert {each.kind for each in found.texts} == {BY_DIGITS}


def test_what_faster_clocks_do_not_tell_is_said(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    text = "import time\nbegan = time.time()\ntime.sleep(0.1)\nprint('%r' % (time.time() - began))\n"
    program.write_text(f"{text}assert time.time() - began < 5\n")
    run, scratch = recorded(sys.executable, [str(program)]), scratch_below(tmp_path)
    found = [run_once(run, recorder_settings(HowToRun()), HowToRun(), scratch) for _ in range(2)]
    said: list[str] = []
    assert faster_runs(run, HowToRun(), found, scratch, said.append) == []
    assert said[-1] == "warning: faster clocks tell nothing: it then ended with status 1"


def test_the_number_of_a_shell_that_started_it_is_no_result(tmp_path: Path) -> None:
    script = tmp_path / "program.sh"
    script.write_text(f"echo shell $$\n{sys.executable} -c 'print(1)'\n")
    found = compared("/bin/sh", [str(script)], tmp_path, how=HowToRun(trace=False))
    numbers = [int(run.stdout[0].split()[1]) for run in found.runs]
    assert (verdict(found) == "text") == (min(numbers) > 999), found.ends


@pytest.mark.parametrize(("loads", "known"), [((3.9, 4.2), True), ((3.9, 4.3), False)])
def test_a_measure_that_no_clock_changes_is_known_by_the_place_that_gave_it(
    loads: tuple[float, float], known: bool
) -> None:
    """As the load of a machine is: it stands in the faster runs, too, where that place gave it."""
    site = ("value", "train.py", 3, 0)
    runs = [
        FasterRun(each.times, each.texts, Evidence(items=[Item(site, load, 0, 0)]))
        for each, load in zip(faster("load 3.9", "load 4.2"), loads, strict=True)
    ]
    grown = GrownTimes(runs, ["load 4.0"], "standard output")
    assert grown.are_times(("4.0", "4.1"), ("load 4.0", "load 4.1"), sites={site}) is known
    assert grown.are_times(("4.0", "4.1"), ("load 4.0", "load 4.1")) is False


def profile(*rows: tuple[str, str, str, str]) -> list[str]:
    return [f"{name} | {mean} | 4 | {whole} | {share} %" for name, mean, whole, share in rows]


ONE = profile(("all", "3.000", "12.00", "100.0"), ("load", "0.2754", "1.1016", "9.18"))
OTHER = profile(("all", "3.250", "13.00", "100.0"), ("load", "0.01254", "0.05016", "0.386"))
FASTER = (
    "\n".join(profile(("all", "310.0", "1240.0", "100.0"), ("load", "26.01", "104.04", "8.39"))),
    "\n".join(profile(("all", "3100.0", "12400.0", "100.0"), ("load", "270.1", "1080.4", "8.71"))),
)


@pytest.mark.parametrize("share", ["0.386", "0.496"])
def test_a_share_of_the_time_is_known_by_the_times_beside_it(share: str) -> None:
    """A share of 0.496 would be of other times."""
    row = OTHER[1].replace("0.386", share)
    grown = GrownTimes(faster(*FASTER), ONE, "standard output", [OTHER[0], row])
    found = grown.are_times(("9.18", share), (ONE[1], row))
    assert (found is True) is (share == "0.386")


def test_a_sum_is_known_by_the_mean_beside_it() -> None:
    """On a busy machine it may be many times as long in one run."""
    grown = GrownTimes(faster(*FASTER), ONE, "standard output", OTHER)
    lines, mean = (ONE[1], OTHER[1]), ("0.2754", "0.01254")
    assert grown.is_multiple(("1.1016", "0.05016"), lines, {mean})
    assert not grown.is_multiple(("1.1016", "0.05016"), lines, set())
    assert not grown.is_multiple(("9.18", "0.386"), lines, {mean})
