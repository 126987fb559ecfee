"""Experiments: what pinning one suspect proves, and what nothing proves."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from reprobuild.in_image.twice import hints, library_hints
from reprobuild.twice import known_causes
from reprobuild.twice.causes import Trial
from reprobuild.twice.experiments import confirmed
from reprobuild.twice.external_values import Candidate
from reprobuild.twice.records import ProgramLine
from reprobuild.twice.suspects import DUCKDB, EACH_DRAW, Suspect, suspects
from support.supposed import CLOCKS, DRAW, UUID, candidate, supposed


@dataclass
class Runs:
    """Answers by the lines that have to be pinned for the program to repeat."""

    needed: set[int]
    parts: bool = True
    broken: set[int] = field(default_factory=set)
    drawn: bool = False
    """Whether it repeats where all that is drawn is seeded, in each thread by itself."""
    at_start: bool = False
    """Whether it repeats where the generators are seeded at the start."""
    each_draw: bool = False
    """Whether it repeats only where a generator is seeded before each draw."""

    of_duckdb: bool = False
    """Whether it repeats with one thread of DuckDB's."""

    alike: bool = True
    """Whether it gives the same with one clock frozen as with all."""

    unsure: list[tuple[Candidate, ...]] = field(default_factory=list)
    """What was tried that may be only printed."""

    def tried(self, suspect: Suspect) -> Trial | None:
        self.unsure += [] if suspect.sure else [suspect.candidates]
        lines = {line for _, line, _ in suspect.pins}
        if lines & self.broken:
            return None
        repeats = lines >= self.needed
        if suspect.pins == (("draw", 0, ""),):
            repeats = self.drawn
        elif suspect.pins == (DUCKDB,):
            repeats = self.of_duckdb
        elif ("all of numpy.random", 0, "") in suspect.pins:
            repeats = self.at_start
        elif self.each_draw:
            repeats &= all(kind == EACH_DRAW for kind, *_ in suspect.pins)
        return Trial(suspect.what, repeats)

    def ends_alike(self, one: Suspect, other: Suspect) -> bool:
        return self.alike

    def parts_still(self) -> bool:
        return self.parts


def test_what_repeats_when_it_is_pinned_comes_first_with_its_remedy() -> None:
    found = confirmed(supposed(UUID, DRAW, *CLOCKS), Runs({3}), 4)
    assert (found.candidates, found.proven, found.remedy) == ((DRAW,), True, known_causes.SOURCES["draw"])
    assert [trial.repeats for trial in found.trials] == [True]  # before what mostly names something


@pytest.mark.parametrize(
    "runs",
    [Runs({99}), Runs({3}, parts=False), Runs({3}, broken={3, 5})],
    ids=["in vain", "control", "broken"],
)
def test_nothing_is_proven_by(runs: Runs) -> None:
    found = confirmed(supposed(DRAW, UUID, *CLOCKS), runs, 4)
    assert (found.candidates[0], found.proven) == (DRAW, False)


def test_of_several_clocks_the_one_that_is_enough_is_it() -> None:
    found = confirmed(supposed(*CLOCKS), Runs({8}), 4)
    assert (found.candidates, found.remedy) == (CLOCKS[1:], known_causes.SOURCES["clock"])
    long = confirmed(supposed(*CLOCKS), Runs({8}, alike=False), 4)  # it repeats by that alone
    assert long.candidates == CLOCKS
    both = confirmed(supposed(*CLOCKS), Runs({7, 8}), 4)
    assert (both.candidates, both.trials[0].repeats, both.trials[-1].repeats) == (CLOCKS, True, False)


def test_of_both_ends_of_a_duration_the_one_that_computes_it_is_tried_first() -> None:
    begins, ends = (
        replace(each, place=replace(each.place, text=text))
        for each, text in zip(
            CLOCKS, ("self.began = time.time()", "left = 1 - (time.time() - self.began) / 9"), strict=True
        )
    )
    found = confirmed(supposed(begins, ends), Runs(set()), 4)
    assert found.candidates == (ends,)


def test_both_ends_of_a_duration_are_frozen_together() -> None:
    elsewhere = replace(CLOCKS[0], place=ProgramLine("train.py", 90, "report", ""))
    found = confirmed(supposed(elsewhere, *CLOCKS), Runs({7, 8}), 4)
    assert (found.proven, found.candidates) == (True, CLOCKS)
    assert [trial.repeats for trial in found.trials] == [True, False, True, False, False]


@pytest.mark.parametrize(("needed", "lines"), [({9, 10}, [5, 3]), ({9}, [3]), ({10}, [5])])
def test_of_the_queries_of_several_lines_those_of_one_are_tried_alone(
    needed: set[int], lines: list[int]
) -> None:
    tied = [
        replace(candidate("hint", library_hints.TIED, at), made_for=ProgramLine("train.py", by, "main", ""))
        for at, by in ((3, 9), (5, 10))
    ]
    runs = Runs(needed)
    runs.of_duckdb = True
    found = confirmed(supposed(*tied), runs, 4)
    assert (found.proven, [each.place.line for each in found.candidates]) == (True, lines)
    one = confirmed(supposed(tied[0]), runs, 4)
    assert [trial.repeats for trial in one.trials] == [True, needed == {9}]
    assert one.proven is (needed == {9})  # another query is the cause, of which no line is known
    alone = replace(tied[0], made_for=None)
    found = confirmed(supposed(alone, tied[1]), runs, 4)
    assert found.candidates == ((tied[1],) if needed == {10} else (alone,))


def test_the_remedy_is_of_what_drew() -> None:
    made = known_causes.of_source("draw", "numpy.random.default_rng")
    library = known_causes.of_source(
        "entropy", "random.SystemRandom.getrandbits in gymnasium.utils.seeding:39"
    )
    assert made is not None
    assert library is not None
    assert made.remedy.startswith("give it one: default_rng(SEED)")
    assert library.remedy == "give it one, by its argument seed, random_state or rng"


def test_a_table_that_parts_still_when_pinned_stays_what_the_trace_says_of_it() -> None:
    table = candidate("computed", "polars.DataFrame.with_columns", 4)
    found = confirmed(supposed(table), Runs({99}), 4)
    assert (found.proven, found.trials) == (True, ())
    assert not confirmed(supposed(DRAW), Runs({99}), 4).proven
    found = confirmed(supposed(table), Runs({4}), 4)
    assert found.remedy == known_causes.SOURCES["computed"]


def test_one_thread_proves_what_came_before_a_time_limit_ahead_of_a_line_that_threads_fill() -> None:
    filled = candidate("hint", "what threads fill in the order in which they come to it", 12)
    waits = candidate("timeout", "Queue.get", 6)
    found = confirmed(supposed(waits, filled), Runs({0}), 4)
    assert [each.place.line for each in found.candidates] == [6, 12]


def test_a_generator_that_a_thread_makes_is_no_shared_draw() -> None:
    line = candidate("hint", "threads that share what they work on", 12)
    made = candidate("draw", "numpy.random.default_rng", 9)
    found = confirmed(supposed(made, line), Runs({0}), 4)
    assert (found.candidates, found.remedy) == ((line,), known_causes.THREADS)


def test_of_lines_that_threads_make_suspect_the_likeliest_come_first() -> None:
    filled = candidate("hint", "what threads fill in the order in which they come to it", 12)
    first = candidate("hint", "what comes first from others that put something in", 14)
    full = candidate("hint", "what a full queue does not take", 16)
    found = confirmed(supposed(filled, first, full), Runs({0}), 4)
    assert found.candidates == (full, filled, first)
    assert found.remedy is known_causes.FULL


def test_what_threads_draw_in_turn_is_the_cause_where_one_thread_repeats() -> None:
    line = candidate("hint", "threads that share what they work on", 12)
    ended = candidate("hint", "the order in which tasks end", 14)
    runs = Runs({0})
    found = confirmed(supposed(DRAW, line, ended), runs, 4)
    assert found.candidates == (DRAW, line, ended)
    assert found.remedy is known_causes.SHARED_GENERATOR
    assert [trial.repeats for trial in found.trials] == [False, True]


def test_of_lines_that_draw_from_one_generator_those_count_that_have_to_be_seeded() -> None:
    """As where a third line draws what is only printed."""
    lines = tuple(candidate("draw", "numpy.random.rand", line) for line in (3, 4, 5))
    found = confirmed(supposed(*lines, *CLOCKS), Runs({3, 5}, drawn=True, at_start=True), 4)
    assert (found.proven, found.candidates) == (True, (lines[0], lines[2]))
    assert found.remedy is known_causes.SOURCES["draw"]
    assert [trial.repeats for trial in found.trials] == [False, True, True, True, False, True, False]


@pytest.mark.parametrize("at_start", [True, False], ids=["nobody seeds it", "threads share it"])
def test_threads_share_a_generator_where_its_seed_alone_changes_nothing(*, at_start: bool) -> None:
    """Lines that are not known draw, too."""
    lines = tuple(candidate("draw", "numpy.random.rand", line) for line in (3, 4))
    found = confirmed(supposed(*lines, *CLOCKS), Runs({3, 4, 5}, drawn=True, at_start=at_start), 4)
    assert (found.proven, found.candidates) == (True, lines)
    shared = known_causes.SHARED_GENERATOR
    assert found.remedy is (known_causes.SOURCES["draw"] if at_start else shared)


def test_what_workers_draw_is_seeded_before_each_draw() -> None:
    """Which worker draws how often depends on time."""
    lines = tuple(candidate("draw", "numpy.random.rand", line) for line in (3, 4))
    found = confirmed(supposed(*lines, *CLOCKS), Runs({3}, each_draw=True), 4)
    assert (found.proven, found.candidates) == (True, lines[:1])


def test_the_line_that_was_tried_first_may_be_left_out_too() -> None:
    lines = tuple(candidate("draw", "numpy.random.rand", line) for line in (3, 4))
    found = confirmed(supposed(*lines, *CLOCKS), Runs({4}, drawn=True, at_start=True), 4)
    assert (found.proven, found.candidates) == (True, lines[1:])


def test_a_generator_without_a_seed_is_tried_before_what_draws_from_a_seeded_one() -> None:
    none = ("('none given', 1)", "('none given', 2)")
    made = replace(candidate("seed", "numpy.random.default_rng", 8), values=none)
    found = suspects(supposed(DRAW, made, *CLOCKS))
    assert found[0].candidates == (made,)
    proven = confirmed(supposed(DRAW, made, *CLOCKS), Runs({8}), 4)
    assert (proven.candidates, len(proven.trials)) == ((made,), 1)
    assert proven.remedy.remedy.startswith("give it one")


def test_generators_without_seeds_are_shared_by_no_threads() -> None:
    made = tuple(candidate("draw", "numpy.random.default_rng", line) for line in (3, 4))
    found = confirmed(supposed(*made), Runs({3, 4}, drawn=True), 4)
    assert (found.candidates, found.remedy) == (made, known_causes.of_source("draw", made[0].name))


def test_a_generator_without_a_seed_in_each_worker_is_tried_in_one_alone() -> None:
    """Which of several workers gets a task varies, so that their generators are seeded is not enough."""
    drawn = candidate("entropy", "random.SystemRandom.getrandbits", 7)
    hint = candidate("hint", known_causes.UNSEEDED_HINT, 7)
    found = confirmed(supposed(drawn, hint, DRAW), Runs({0, 7}), 6)
    assert (found.proven, found.candidates) == (True, (drawn,))
    assert found.trials[-1].what.endswith("and one worker in each pool")
    assert found.remedy == known_causes.SOURCES["draw"]
    assert suspects(supposed(drawn, hint, DRAW))[-1].pins[1:] == (("threads", 0, ""),)
    assert not any(each.pins[1:] for each in suspects(supposed(drawn, DRAW)))


def test_a_space_of_gymnasium_has_a_generator_of_its_own() -> None:
    """Seeding the modules' generators changes nothing of it, and no threads share it."""
    space = candidate("draw", "gymnasium.spaces.Discrete.sample", 5)
    lines = (DRAW, space)
    found = confirmed(supposed(*lines, *CLOCKS), Runs({5}, drawn=True), 4)
    assert (found.candidates, found.remedy) == ((space,), known_causes.of_source("draw", space.name))


def test_of_what_is_mostly_printed_nothing_is_proven_in_part() -> None:
    text = "log.info('took %.1f', time.time() - t0)"
    printed = tuple(replace(each, place=replace(each.place, text=text)) for each in CLOCKS)
    runs = Runs({99})
    confirmed(supposed(DRAW, UUID, *printed), runs, 9)
    assert runs.unsure == [printed, (UUID,)]
    confirmed(supposed(*CLOCKS), runs, 9)
    assert len(runs.unsure) == 2


@pytest.mark.parametrize("hint", [hints.BATCHES, hints.TIMER, hints.TRIALS])
def test_what_a_hint_says_is_tried(hint: str) -> None:
    line = ProgramLine("train.py", 3, "main", "")
    cause = supposed(Candidate("hint", hint, line, ("", ""), 0, -1))
    runs = Runs(needed={0})
    found = confirmed(cause, runs, 4)
    assert found.proven
    assert [each.place for each in found.candidates] == [line]
    assert found.remedy is known_causes.of_hint(hint)


def test_a_draw_is_no_cause_where_a_seeded_generator_changes_nothing() -> None:
    cause = replace(supposed(), kind="random", remedy=known_causes.RANDOM)
    assert not confirmed(cause, Runs(needed={9}), 4).proven
    assert confirmed(cause, Runs(needed={0}), 4).proven


def test_what_is_the_cause_only_together_is_pinned_together() -> None:
    """As a seed that is made of a time and of a process's number."""
    pid = candidate("process", "os.getpid", 4)
    runs = Runs({4, 7})
    found = confirmed(supposed(UUID, pid, *CLOCKS), runs, 4)
    assert found.proven
    assert {each.place.line for each in found.candidates} == {4, 7}
    assert [trial.repeats for trial in found.trials[:3]] == [False] * 3
    assert all(trial.repeats for trial in found.trials[3:])
    assert not confirmed(supposed(UUID, pid), Runs({9}), 4).proven
    assert not confirmed(supposed(UUID, pid), Runs({4, 5}, parts=False), 4).proven


def test_threads_that_share_a_generator_are_tried_beyond_the_number_of_experiments() -> None:
    drawn = [candidate("draw", "random.random", line) for line in (3, 4, 5, 6)]
    shared = candidate("hint", known_causes.DRAWN_IN_TURN, 12)
    tried: list[str] = []

    class Noted(Runs):
        def tried(self, suspect: Suspect) -> Trial | None:
            tried.append(suspect.what)
            return Trial(suspect.what, repeats=False)

    confirmed(supposed(*drawn, shared), Noted({99}), 1)
    assert "one thread, and one worker in each pool" in tried
    tried.clear()
    confirmed(supposed(*drawn), Noted({99}), 1)
    assert "one thread, and one worker in each pool" not in tried
