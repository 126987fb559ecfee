"""What may be the cause and can be pinned."""

from __future__ import annotations

import pytest

from reprobuild.in_image.twice import orders, thread_hints
from reprobuild.twice import known_causes
from reprobuild.twice.external_values import Candidate
from reprobuild.twice.records import ProgramLine
from reprobuild.twice.suspects import BY_WORKER, suspects
from support.supposed import CLOCKS, DRAW, candidate, supposed


def test_the_value_that_a_seed_comes_from_is_tried_before_the_seed() -> None:
    seed = Candidate(
        "seed", "torch.manual_seed", ProgramLine("train.py", 9, "main", ""), ("(1,)", "(2,)"), 9, 1
    )
    drawn = candidate("entropy", "random.SystemRandom.getrandbits", 4)
    assert [each.candidates for each in suspects(supposed(seed, drawn))] == [(drawn,), (seed,)]
    # And the seed before what is drawn then, which differs for its sake.
    assert next(each.candidates for each in suspects(supposed(DRAW, seed))) == (seed,)


@pytest.mark.parametrize("module", known_causes.LATE_SEEDS)
def test_of_a_late_seed_only_that_generator_is_seeded_at_the_start(module: str) -> None:
    late = candidate("hint", known_causes.LATE_SEEDS[module], 9)
    first = suspects(supposed(DRAW, late))[0]
    assert (first.pins, first.candidates) == (((f"all of {module}", 0, ""),), (late,))


def test_what_threads_go_by_is_told_as_the_recorder_tells_it() -> None:
    assert known_causes.CHECKED == thread_hints.CHECKED


@pytest.mark.parametrize(
    ("name", "pin"),
    [
        ("shuf in a command", "commands"),
        ("xargs -P 2 in a command", "commands"),
        ("date +%s in a command", "dates"),
        ("& in a command", "background"),
        ("make -s -j in a command", "make"),
        ("mktemp in a command", "mktemp"),
    ],
)
def test_a_command_is_replaced(name: str, pin: str) -> None:
    lines = tuple(candidate("entropy", name, line) for line in (3, 9))
    (found,) = suspects(supposed(*lines))
    assert (found.pins, found.faithful) == (((pin, 0, ""),), pin in ("dates", "make", "mktemp"))
    assert found.candidates == lines


def test_what_one_line_takes_at_several_places_of_a_library_is_tried_once() -> None:
    names = [candidate("entropy", f"uuid.uuid4 in dask.base:{line}", 61) for line in (545, 584)]
    other = candidate("entropy", "uuid.uuid4 in dask.base:545", 60)
    assert [each.candidates for each in suspects(supposed(*names, other))] == [(*names,), (other,)]


def test_what_came_first_from_a_queue_is_the_cause_before_what_fills_it() -> None:
    filled = candidate("hint", "what threads fill in the order in which they come to it", 12)
    came = candidate("order", "Queue.get", 19)
    (found,) = suspects(supposed(came, filled))
    assert (found.candidates, found.remedy) == ((came,), known_causes.SOURCES["order"])
    by_worker = candidate("order", f"Queue.get{BY_WORKER}", 19)
    (found,) = suspects(supposed(by_worker, filled))
    assert found.candidates == (filled,)
    drawn = [each for each in suspects(supposed(came, filled, DRAW)) if ("threads", 0, "") in each.pins]
    assert [each.candidates[0] for each in drawn] == [DRAW]


def test_the_recorder_and_the_report_use_one_name_for_workers() -> None:
    assert BY_WORKER == orders.BY_WORKER


def test_the_lines_that_go_through_what_was_waited_for_are_told_too() -> None:
    waits = candidate("order", "concurrent.futures.wait", 9)
    above, below, far = (candidate("hint", "the order of a set of futures", line) for line in (8, 13, 40))
    found = suspects(supposed(waits, above, below, far))
    assert found[0].candidates == (waits, below)


def test_a_time_limit_is_pinned_but_not_a_queue_s() -> None:
    limits = candidate("timeout", "Future.result", 5), candidate("timeout", "Queue.get", 6)
    (found,) = suspects(supposed(*limits, *CLOCKS[:0]))
    assert found.candidates == limits[:1]


def test_where_threads_share_a_generator_the_lines_that_they_run_come_first() -> None:
    shared = candidate("hint", known_causes.DRAWN_IN_TURN, 12)
    inside, helper = (candidate("draw", "random.random", line) for line in (12, 3))
    for drawn, expected in (((helper, inside), [12, 3, 12]), ((helper,), [12, 3])):
        found = [each for each in suspects(supposed(*drawn, shared)) if each.pins == (("threads", 0, ""),)]
        assert [each.place.line for each in found[0].candidates] == expected
        assert found[0].remedy is known_causes.SHARED_GENERATOR
