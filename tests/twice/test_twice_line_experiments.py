"""The statement at which a difference came in, by what experiments with single statements prove."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from reprobuild.twice import known_causes
from reprobuild.twice.causes import Trial
from reprobuild.twice.external_values import Candidate
from reprobuild.twice.first_lines import Decision, Divergence, FollowedLines
from reprobuild.twice.line_experiments import (
    DECISION,
    LINE,
    PASSED,
    confirmed_line,
    followed_back,
    proven_in_part,
)
from reprobuild.twice.line_records import LineRecord
from reprobuild.twice.recorded_run import HowToRun
from reprobuild.twice.records import ProgramLine
from reprobuild.twice.report import rows, verdict
from reprobuild.twice.runs import compare_runs
from reprobuild.twice.suspects import ADDRESSES, Suspect
from support.supposed import supposed
from support.twice import PROGRAMS, compared, recorded, scratch_below

PROGRAM = PROGRAMS / "lines.py"
CASES = ("returned", "order", "upstream")
OTHERS = ("argument", "seeded", "thread", "attribute", "several_lines", "large")


def marked(case: str) -> int:
    """Return the number of the line that is a case's cause."""
    lines = PROGRAM.read_text().splitlines()
    [found] = [number for number, line in enumerate(lines, 1) if case in line.partition("  # ")[2].split()]
    return found


@pytest.mark.parametrize("case", [*CASES, *(pytest.param(case, marks=pytest.mark.slow) for case in OTHERS)])
def test_a_line_is_proven_to_be_the_cause_whatever_it_takes(case: str, tmp_path: Path) -> None:
    found = compared(sys.executable, [str(PROGRAM), case], tmp_path)
    cause = found.cause
    assert cause is not None
    told = rows(found)
    if case == "seeded":  # where the generator is seeded has no value of its own, but that is known otherwise
        assert [each.place.line for each in cause.candidates] == [marked(case)], told
        return
    assert cause.proven, told
    [line] = cause.candidates
    first = marked(case) - 4 if case == "several_lines" else marked(case)
    assert (line.kind, Path(line.place.file).name, line.place.line) == (LINE, "lines.py", first), told
    headings = [heading for heading, _ in told]
    assert "first line" in headings
    assert "remedy" in headings
    assert any(heading == "experiment" and "this is proven" in text for heading, text in told)


def test_the_line_at_which_a_time_decides_comes_before_the_clock(tmp_path: Path) -> None:
    found = compared(sys.executable, [str(PROGRAM), "deadline"], tmp_path)
    cause = found.cause
    assert cause is not None
    assert [(each.kind, each.place.line) for each in cause.candidates][:2] == [
        (DECISION, marked("deadline")),
        ("clock", marked("deadline") - 2),
    ], rows(found)
    assert cause.place.line == marked("deadline")
    assert cause.proven
    assert (
        "other path",
        f"the runs went on in another way at {cause.place}: `{cause.place.text}`, by time.time",
    ) in rows(found)


def test_a_clock_that_is_a_seed_has_no_line_at_which_it_decides(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import random, time\nseed = time.time_ns() & 0xFFFF\nown = random.Random(seed)\n"
        "counts = [int(own.random() * 9) for _ in range(20)]\nif sum(counts) > 80:\n    counts = counts[:9]\n"
        "print(sum(counts), counts)\n"
    )
    found = compared(sys.executable, [str(program)], tmp_path)
    assert found.cause is not None
    assert [(each.kind, each.place.line) for each in found.cause.candidates][:1] == [("clock", 2)], rows(
        found
    )


def test_a_field_that_takes_the_time_for_each_object_is_named(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import random, time\nfrom dataclasses import dataclass, field\n@dataclass\nclass Params:\n"
        "    size: int = 9\n    marks: list = field(default_factory=list)\n"
        "    seed: int = field(default_factory=time.time_ns)\n"
        "params = Params()\nprint(random.Random(params.seed).random())\n"
    )
    found = compared(sys.executable, [str(program)], tmp_path)
    assert found.cause is not None
    assert [(each.name, each.place.line) for each in found.cause.candidates] == [("time.time_ns", 7)], rows(
        found
    )


def test_a_value_that_cannot_travel_refutes_nothing(tmp_path: Path) -> None:
    found = compared(sys.executable, [str(PROGRAM), "unmovable"], tmp_path)
    assert found.cause is not None
    assert found.cause.candidates[0].place.line == marked("unmovable")
    assert (found.cause.proven, found.cause.trials) == (False, ())


def test_a_trace_that_cannot_be_read_is_told_and_the_rest_of_the_report_stays(tmp_path: Path) -> None:
    said: list[str] = []
    run = recorded(sys.executable, [str(PROGRAM), "forged"])
    found = compare_runs(run, HowToRun(), scratch_below(tmp_path), said.append)
    assert (verdict(found), found.stopped) == ("parts", "")
    assert found.cause is not None
    assert not found.cause.proven
    assert [text for text in said if "the program's lines are not followed" in text and "0.lines" in text]


def divergence(line: int, *names: str, at: int = 0, sure: bool = True) -> Divergence:
    place = ProgramLine("train.py", line, "main", "")
    record = LineRecord("line", 1, 0, place, line, "MainThread", at, {}, {}, {}, {}, {})
    return Divergence(
        place,
        line,
        at,
        ("1", "2"),
        names[0] if names else "",
        record,
        list(names),
        reached={place},
        sure=sure,
        thread="MainThread",
    )


@dataclass
class Lines:
    """Answers by the line that has to leave the same."""

    found: list[Divergence]
    needed: int = 0
    parts: bool = True
    kept_none: int = 0
    addresses: bool = False
    """Whether it repeats with the same addresses in each run."""
    left: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """What differs still with a line in whose case the first difference is gone."""
    in_part: list[tuple[Suspect, Trial]] = field(default_factory=list)
    shared: list[tuple[ProgramLine, ProgramLine | None]] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    callers: dict[ProgramLine, ProgramLine] = field(default_factory=dict)
    behind: list[Divergence] = field(default_factory=list)
    """What is found where some lines are harmless."""
    names_matter: bool = False
    """Whether it repeats with all names and times fixed."""

    def followed(
        self, harmless: frozenset[ProgramLine] = frozenset(), *, apart: bool = True
    ) -> FollowedLines:
        found = [each for each in self.behind if each.place not in harmless] if harmless else self.found
        return FollowedLines(list(found), self.decisions, self.shared, self.callers)

    def kept(self, divergence: Divergence) -> Mapping[str, str] | None:
        return None if divergence.place.line == self.kept_none else {"REPROBUILD_TWICE_VALUES": ""}

    def tried(self, suspect: Suspect) -> Trial | None:
        if suspect is ADDRESSES:
            return Trial(suspect.what, repeats=self.addresses)
        if "REPROBUILD_TWICE_LINE" not in suspect.settings:
            return Trial(suspect.what, repeats=self.names_matter)
        line = int(suspect.settings["REPROBUILD_TWICE_LINE"].split("\t")[1])
        trial = Trial(suspect.what, repeats=line == self.needed, left=self.left.get(line, ()))
        if trial.left:
            self.in_part.append((suspect, trial))
        return None if self.needed < 0 else trial

    def ends_alike(self, one: Suspect, other: Suspect) -> bool:
        return True

    def parts_still(self) -> bool:
        return self.parts

    first_parts_still = parts_still


def outcome(lines: Lines, *known: Candidate, most: int = 4) -> tuple[list[tuple[str, int]], bool] | None:
    cause = confirmed_line(None, lines, most)
    if cause is None:
        return None
    return [(each.kind, each.place.line) for each in cause.candidates], cause.proven


def test_what_is_refuted_is_no_candidate_and_what_cannot_be_tried_is_one() -> None:
    a, b, c = divergence(1, "a"), divergence(2, "b"), divergence(3)
    assert outcome(Lines([a, b, c], needed=2)) == ([(LINE, 2)], True)
    assert outcome(Lines([a, b, c], needed=9)) == ([(LINE, 3)], False)
    assert outcome(Lines([a, b, c], needed=2, kept_none=2)) == ([(LINE, 2), (LINE, 3)], False)
    assert outcome(Lines([a, b], needed=-1)) == ([(LINE, 1), (LINE, 2)], False)
    assert outcome(Lines([a, b], needed=2, parts=False)) == ([(LINE, 2)], False)
    assert outcome(Lines([a, b], needed=2), most=1) == ([(LINE, 2)], False)
    assert outcome(Lines([])) is None


def test_an_order_that_addresses_decide_comes_in_at_the_first_line_that_cannot_be_tried() -> None:
    """Objects of the program's cannot be given to another run."""
    walks, adds = divergence(2, "b"), divergence(3, "c", sure=False)
    assert outcome(Lines([walks, adds], needed=9, kept_none=2, addresses=True)) == ([(LINE, 2)], True)
    assert outcome(Lines([walks, adds], needed=3, kept_none=2)) == ([(LINE, 2)], False)
    assert outcome(Lines([walks, adds], needed=3, kept_none=2, addresses=True, parts=False)) == (
        [(LINE, 2)],
        False,
    )
    cause = confirmed_line(None, Lines([walks], kept_none=2, addresses=True), 4)
    assert cause is not None
    assert cause.remedy is known_causes.SET


def test_an_order_that_addresses_decide_at_several_lines_comes_in_at_the_first() -> None:
    walks, later = divergence(2, "b"), replace(divergence(3, "c"), late=True)
    assert outcome(Lines([walks, later], needed=9, kept_none=3, addresses=True)) == ([(LINE, 2)], True)


def test_what_came_late_proves_nothing_where_an_earlier_line_cannot_be_tried() -> None:
    walks, later = divergence(2, "b"), replace(divergence(3, "c"), late=True)
    assert outcome(Lines([walks, later], needed=3, kept_none=2)) == ([(LINE, 2), (LINE, 3)], False)
    assert outcome(Lines([walks, replace(later, late=False)], needed=3, kept_none=2)) == ([(LINE, 3)], True)


@pytest.mark.parametrize(
    ("kind", "name", "needed", "kept_none", "line"),
    [
        ("entropy", "uuid.uuid4", 4, 3, 4),  # the value at 3 cannot be given to another run
        ("entropy", "uuid.uuid4", 3, 1, 3),
        ("entropy", "uuid.uuid4", 9, 0, 0),
        ("draw", "random.random", 4, 3, 0),  # which is no name: what it gives may be what matters
    ],
)
def test_behind_a_line_that_only_names_something_comes_the_next_that_can_be_tried(
    kind: str, name: str, needed: int, kept_none: int, line: int
) -> None:
    known = Candidate(kind, name, divergence(1).place, ("1", "2"), 0, 1)
    cause = confirmed_line(None, Lines([divergence(1, "a")], needed=-1), 4)
    assert cause is not None
    behind = [divergence(each, "b", at=each) for each in (3, 4)]
    lines = Lines([divergence(1, "a")], needed=needed, kept_none=kept_none, behind=behind)
    found = confirmed_line(replace(cause, candidates=(known,), trials=()), lines, 4)
    assert found is not None
    assert (found.candidates[0].place.line if found.proven else 0) == line
    assert not found.proven or found.remedy is known_causes.BEHIND
    lines.names_matter = True  # then what is behind them may come of them
    again = confirmed_line(replace(cause, candidates=(known,), trials=()), lines, 4)
    assert again is not None
    assert not again.proven


def test_what_parts_first_has_a_cause_of_its_own() -> None:
    """With one line only a file differs still, with another one a stream besides."""
    left = {1: ("file a", "standard error"), 2: ("file a",)}
    lines = Lines([divergence(1, "a"), divergence(2, "b"), divergence(3, "c")], needed=9, left=left)
    cause = confirmed_line(None, lines, 4)
    assert cause is not None
    assert not cause.proven
    found = proven_in_part(cause, lines)
    assert found is not None
    assert ([each.place.line for each in found.candidates], found.proven) == ([2], True)
    assert [each.left for each in found.trials] == [left[1], (), left[2]]
    assert proven_in_part(found, lines) is None
    lines.parts = False
    assert proven_in_part(cause, lines) is None


def test_a_seed_from_elsewhere_is_no_cause_where_nothing_proves_that() -> None:
    seed = Candidate("seed", "random.seed", divergence(9).place, ("(50,)", "(51,)"), 0, 1)
    cause = confirmed_line(None, Lines([divergence(2, "b")], needed=2), 4)
    assert cause is not None
    seeded = replace(cause, candidates=(seed,), trials=())
    upstream = divergence(2, "b")
    upstream.reached.add(seed.place)
    proven = followed_back(seeded, Lines([upstream], needed=2), 4)
    assert ([each.place.line for each in proven.candidates], proven.proven) == ([2], True)
    unproven = followed_back(seeded, Lines([upstream], kept_none=2), 4)
    assert ([each.place.line for each in unproven.candidates], unproven.proven) == ([2, 9], False)
    assert followed_back(seeded, Lines([divergence(3, "c")], needed=3), 4) == seeded
    unseeded = replace(seeded, candidates=(replace(seed, values=("('none given', 1)", "('none given', 2)")),))
    assert followed_back(unseeded, Lines([upstream], needed=2), 4) == unseeded
    clock = Candidate("clock", "time.time_ns", seed.place, ("1", "2"), 0, 1)
    assert followed_back(seeded, Lines([upstream], kept_none=2), 4, [clock]) == seeded
    elsewhere = replace(clock, place=divergence(8).place)
    assert not followed_back(seeded, Lines([upstream], kept_none=2), 4, [elsewhere]).proven


def test_a_decision_by_the_other_end_of_a_duration_is_found_after_one_by_the_clock_itself() -> None:
    def at(line: int, text: str = "", function: str = "measure") -> ProgramLine:
        return ProgramLine("train.py", line, function, text)

    cause = replace(supposed(), candidates=(Candidate("clock", "time.time", at(9), ("1", "2"), 0, 1),))
    other = Decision(at(20, "split = min(times)", "plan"), frozenset([at(6)]))
    exact = Decision(at(30, "if left < 0:", "plan"), frozenset([at(9)]))
    for decisions, line in (([other], 20), ([other, exact], 30), ([Decision(at(20), frozenset([at(6)]))], 9)):
        found = followed_back(cause, Lines([], decisions=decisions), 4)
        assert found.candidates[0].place.line == line


def test_of_threads_that_share_a_generator_the_lines_that_draw_are_the_cause() -> None:
    filled = Candidate(
        "hint",
        "threads that share what they work on",
        ProgramLine("train.py", 3, "main", ""),
        ("", ""),
        0,
        -1,
    )
    lines = Lines([])
    cause = replace(supposed(filled), remedy=known_causes.THREADS)
    assert followed_back(cause, lines, 4) is cause
    lines.shared = [(ProgramLine("train.py", 8, "draw", ""), ProgramLine("train.py", 4, "work", ""))]
    found = followed_back(cause, lines, 4)
    assert [each.place.line for each in found.candidates] == [8, 3]
    assert found.remedy is known_causes.SHARED_GENERATOR


def test_what_is_known_of_a_line_stands_in_its_place() -> None:
    clock = Candidate("clock", "time.time", divergence(1).place, ("1", "2"), 0, 1)
    draw = Candidate("draw", "numpy.random.rand", divergence(2).place, ("1", "2"), 0, 1)
    cause = confirmed_line(None, Lines([divergence(2, "b")], needed=2), 4)
    assert cause is not None
    given = [divergence(1, "a"), divergence(2, "b")]
    known = replace(cause, candidates=(clock, draw), trials=())
    from_trace = confirmed_line(known, Lines(given, needed=2), 4)
    assert from_trace is not None
    assert from_trace.candidates == (draw,)
    assert from_trace.remedy is known_causes.SOURCES["draw"]
    assert len(from_trace.trials) == 1  # a clock is tried last: most are only printed


def test_a_time_between_two_clocks_is_where_it_goes_into_what_is_computed() -> None:
    def at(line: int, text: str = "") -> ProgramLine:
        return ProgramLine("train.py", line, "main", text)

    passed, used = at(4, "    dt = now - last"), at(6, "if position[0] > dt_limit:")
    clocks = tuple(Candidate("clock", "time.time", at(line), ("1", "2"), 0, 1) for line in (2, 3))
    both = [replace(divergence(line), place=at(line), end=line, reached={passed, used}) for line in (2, 3)]
    cause = replace(supposed(), candidates=clocks)
    decided = Decision(used, frozenset([at(2), at(3)]))
    found = followed_back(cause, Lines(both, decisions=[decided]), 4)
    assert [(each.kind, each.place.line) for each in found.candidates][:2] == [(PASSED, 4), ("clock", 2)]
    assert found.remedy is known_causes.PASSED
    limit = replace(decided, place=at(7, "while dt < limit:"))
    found = followed_back(cause, Lines(both, decisions=[limit]), 4)
    assert [(each.kind, each.place.line) for each in found.candidates][:2] == [(DECISION, 7), ("clock", 2)]
    one = [replace(both[0], reached=set()), both[1]]  # it is the time since something else
    assert followed_back(cause, Lines(one), 4).candidates == clocks


def test_of_drawn_names_the_statement_that_they_decide_is_told_too() -> None:
    drawn = Candidate("entropy", "uuid.uuid4", divergence(2).place, ("UUID('1')", "UUID('2')"), 0, 1)
    cause = replace(supposed(), candidates=(drawn,))
    named, sorts = divergence(2, "key"), divergence(5, "first", at=5)
    found = followed_back(cause, Lines([named], behind=[named, sorts]), 4)
    assert [(each.kind, each.place.line) for each in found.candidates] == [("entropy", 2), (DECISION, 5)]
    assert followed_back(cause, Lines([named]), 4).candidates == (drawn,)


def test_a_clock_is_told_with_who_asks_its_function_for_the_time() -> None:
    def at(line: int, function: str = "used") -> ProgramLine:
        return ProgramLine("train.py", line, function, "return best")

    clock = Candidate("clock", "time.time", at(2), ("1", "2"), 0, 1)
    read = replace(divergence(2), place=at(2), end=2, reached={at(4), at(9, "main")})
    lines = Lines([read], callers={at(4): at(8, "main")})
    found = followed_back(replace(supposed(), candidates=(clock,)), lines, 4)
    assert [(each.place.line, each.made_for) for each in found.candidates] == [(2, at(8, "main"))]
    end = replace(clock, place=at(3))  # of a duration that began at line 2
    read.reached.add(at(3))
    found = followed_back(replace(supposed(), candidates=(end,)), lines, 4)
    assert [each.made_for for each in found.candidates] == [at(8, "main")]
    lines.callers = {at(9, "main"): at(20, "")}  # which another function returns
    found = followed_back(replace(supposed(), candidates=(clock,)), lines, 4)
    assert found.candidates == (clock,)
