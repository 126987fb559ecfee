"""Runs for experiments: when a program counts as one that repeats."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path

import pytest

from reprobuild.twice.causes import Trial
from reprobuild.twice.laboratory import ProgramLaboratory
from reprobuild.twice.line_records import RETURNED, LineRecord, LineStream
from reprobuild.twice.recorded_run import RECORDS, HowToRun, RanProgram
from reprobuild.twice.records import ProgramLine
from reprobuild.twice.report import rows
from reprobuild.twice.runs import compare_runs
from reprobuild.twice.suspects import Suspect
from support.twice import compared, scratch_below

FAITHFUL = Suspect("a clock frozen", (("clock", 1, "a.py"),))
UNFAITHFUL = replace(FAITHFUL, faithful=False)


def laboratory(tmp_path: Path, *, as_it_is: str, pinned: str, seconds: float = 0.0) -> ProgramLaboratory:
    """Return one whose program prints one character after the other, a run each, and the last one on."""
    texts = {False: chain(as_it_is, repeat(as_it_is[-1])), True: chain(pinned, repeat(pinned[-1]))}

    def run(folder: Path, settings: Mapping[str, str], seconds: float | None) -> RanProgram:
        (folder / RECORDS).mkdir()
        text = next(texts["REPROBUILD_TWICE_PIN" in settings]).encode()
        # What is upper case differs on standard error too, by its own.
        other = b"" if text.isdigit() else text
        return RanProgram(status=0, stdout=text.lower(), stderr=other, written=[])

    found = compare_runs(run, HowToRun(trace=False, experiments=0), scratch_below(tmp_path), lambda _: None)
    found = replace(found, runs=[replace(one, seconds=seconds) for one in found.runs])
    return ProgramLaboratory(
        run=run, how=HowToRun(), found=found, scratch=scratch_below(tmp_path), say=lambda _: None, attempts=1
    )


@pytest.mark.parametrize(
    ("suspect", "pinned", "repeats"),
    [(FAITHFUL, "1", True), (FAITHFUL, "1121", False), (UNFAITHFUL, "1", True), (UNFAITHFUL, "12", False)],
)
def test_all_runs_have_to_be_equal(suspect: Suspect, pinned: str, *, repeats: bool, tmp_path: Path) -> None:
    found = laboratory(tmp_path, as_it_is="345678", pinned=pinned).tried(suspect)
    assert found == Trial("a clock frozen", repeats)


@pytest.mark.parametrize(
    ("as_it_is", "pinned", "equal"),
    [
        ("34567890", "112111", (5, 6)),
        ("34567890", "112212", (3, 6)),
        ("34567890", "1213", (0, 0)),  # three kinds
        ("3456789000", "112111", (5, 6)),  # six runs as it is, two with faster clocks, and no more
        ("34563", "112111", (0, 0)),  # they are equal at times without it, too
    ],
)
def test_what_is_not_the_same_for_certain_may_repeat_in_most_runs(
    as_it_is: str, pinned: str, equal: tuple[int, int], tmp_path: Path
) -> None:
    found = laboratory(tmp_path, as_it_is=as_it_is, pinned=pinned).tried(UNFAITHFUL)
    assert found == Trial("a clock frozen", repeats=equal != (0, 0), equal=equal)


def test_a_program_that_takes_long_is_not_run_so_often(tmp_path: Path) -> None:
    found = laboratory(tmp_path, as_it_is="34567890", pinned="112111", seconds=50).tried(UNFAITHFUL)
    assert found == Trial("a clock frozen", repeats=False)


def test_what_parts_at_first_may_repeat_while_something_else_does_not(tmp_path: Path) -> None:
    place = laboratory(tmp_path, as_it_is="345678", pinned="aAaA")
    found = place.tried(FAITHFUL)
    assert found == Trial("a clock frozen", repeats=False, left=("standard error",))
    assert place.in_part == [(FAITHFUL, found)]
    assert place.first_parts_still()
    again = laboratory(tmp_path, as_it_is="34555", pinned="abab")
    assert again.tried(FAITHFUL) == Trial("a clock frozen", repeats=False)
    assert again.in_part == []
    assert not laboratory(tmp_path, as_it_is="34333", pinned="1").first_parts_still()


def test_the_same_settings_are_run_once(tmp_path: Path) -> None:
    place = laboratory(tmp_path, as_it_is="345678", pinned="1112")
    assert place.tried(UNFAITHFUL) == Trial("a clock frozen", repeats=False)
    assert place.tried(replace(UNFAITHFUL, what="the same by another name")) == place.tried(UNFAITHFUL)
    other = replace(UNFAITHFUL, pins=(("clock", 2, "a.py"),))
    assert place.tried(other) == Trial("a clock frozen", repeats=True)  # all its runs are 2


def test_what_is_only_printed_says_nothing_of_what_parts_besides(tmp_path: Path) -> None:
    place = laboratory(tmp_path, as_it_is="345678", pinned="aAaA")
    found = place.tried(replace(FAITHFUL, sure=False))
    assert found is not None
    assert (found.left, place.in_part) == (("standard error",), [])


def test_the_control_of_a_proof_comes_after_it(tmp_path: Path) -> None:
    """A program that has come to repeat meanwhile proves nothing."""
    place = laboratory(tmp_path, as_it_is="34567833333333333", pinned="1")
    assert [place.parts_still() for _ in range(3)] == [True, True, False]


TWO_CAUSES = """
import os, random, sys
print("loss", random.Random(os.urandom(9)).random())
print("order", sorted(range(9), key=lambda _: random.random()), file=sys.stderr)
"""


def test_of_two_causes_that_of_the_first_difference_is_named(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(TWO_CAUSES)
    found = compared(sys.executable, [str(tmp_path / "two.py")], tmp_path)
    assert found.cause is not None
    assert (found.cause.proven, found.cause.candidates[0].place.line) == (True, 3)
    told = [text for heading, text in rows(found) if heading == "experiment"]
    assert told[-1].endswith("the rest repeats; what differs still is standard error: this is proven")


def test_experiments_that_repeat_may_give_something_else(tmp_path: Path) -> None:
    other, third = (replace(FAITHFUL, what=each, pins=(("clock", 2, each),)) for each in "bc")
    place = laboratory(tmp_path, as_it_is="345678", pinned="111122221111")
    found = [place.tried(each) for each in (FAITHFUL, other, third)]
    assert all(each is not None and each.repeats for each in found)
    assert not place.ends_alike(FAITHFUL, other)
    assert place.ends_alike(FAITHFUL, third)
    assert not place.ends_alike(FAITHFUL, replace(FAITHFUL, pins=()))  # which was not tried


def test_runs_that_end_alike_tell_who_calls_but_not_what_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = laboratory(tmp_path, as_it_is="345678", pinned="1")
    ended = next(iter(place.found.runs))
    calls = LineRecord(
        "line", 1, 0, ProgramLine("a.py", 9, "main", "x = f()"), 9, "MainThread", 2, {}, {}, {}, {}, {}
    )
    returns = replace(
        calls,
        number=2,
        up=1,
        at=1,
        place=ProgramLine("a.py", 2, "f", "return 5"),
        after={RETURNED: ("a", "5")},
    )
    stream = LineStream(("", "", "MainProcess", "a.py"), (returns, calls))
    monkeypatch.setattr(ProgramLaboratory, "_traced", lambda _: (ended, [stream]))
    assert not place.followed().callers
    found = place.followed(apart=False)
    assert (found.callers, found.decisions) == ({returns.place: calls.place}, [])
