"""The statements at which a difference came in, by records of both runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count

import pytest

from reprobuild.twice.first_lines import follow, shared_generators
from reprobuild.twice.line_records import RETURNED, LineRecord, LineStream
from reprobuild.twice.records import ProgramLine

Values = Mapping[str, str]


class Run:
    """Records of one run; a digest is made of the text that is given for a value."""

    def __init__(self) -> None:
        self.records: list[LineRecord] = []
        self._clock = count()

    def add(
        self,
        line: int,
        before: Values,
        after: Values,
        *,
        kind: str = "line",
        number: int = 0,
        up: int = 0,
        thread: str = "MainThread",
        drew: Mapping[str, tuple[str, str]] | None = None,
        objects: Mapping[str, tuple[int, ...]] | None = None,
        generators: tuple[str, ...] = (),
    ) -> None:
        place = ProgramLine("train.py", line, "main", f"line {line}")
        record = LineRecord(
            kind, number or len(self.records) + 1, up, place, line, thread, next(self._clock),
            {name: digest(value) for name, value in before.items()},
            {name: (digest(value), value) for name, value in after.items()},
            objects or {},
            drew or {},
            dict.fromkeys(generators, place),
        )  # fmt: skip
        self.records.append(record)


def digest(value: str) -> str:
    return "~" + value.encode().hex().zfill(12) if value.isdigit() else value.encode().hex().zfill(12)


def found(*runs: Run) -> list[tuple[int, list[str]]]:
    one, other = ([LineStream(("", "", "MainProcess", "train.py"), tuple(run.records))] for run in runs)
    return [(each.place.line, each.names) for each in follow(one, other).divergences]


def both(*lines: tuple[int, Values, Values, Values, Values]) -> list[tuple[int, list[str]]]:
    """Return the divergences of runs that do the same; of each line what both runs read and left."""
    a, b = Run(), Run()
    for line, read, left, other_read, other_left in lines:
        a.add(line, read, left)
        b.add(line, other_read, other_left)
    return found(a, b)


def test_a_statement_that_read_the_same_and_left_something_else_is_an_entry() -> None:
    assert both(
        (1, {}, {"x": "a"}, {}, {"x": "a"}),
        (2, {"x": "a"}, {"y": "b"}, {"x": "a"}, {"y": "c"}),
        (3, {"y": "b"}, {"z": "d"}, {"y": "c"}, {"z": "e"}),
        (4, {"z": "d"}, {"z": "d"}, {"z": "e"}, {"z": "e"}),
    ) == [(2, ["y"])]


def test_of_a_value_over_several_lines_the_part_that_differs_has_a_line_of_its_own() -> None:
    runs = Run(), Run()
    parts = [ProgramLine("train.py", line, "main", f"line {line}") for line in (2, 3, 4)]
    for run, value, digests in zip(runs, "ab", ("xyz", "xYZ"), strict=True):
        run.add(1, {}, {"x": value})
        inside = dict(zip(parts, map(digest, digests), strict=True))
        run.records[-1] = replace(run.records[-1], inside=inside)
        run.add(5, {"x": value}, {"y": value})
    streams = ([LineStream(("", "", "MainProcess", "train.py"), tuple(run.records))] for run in runs)
    [divergence] = follow(*streams).divergences
    assert (divergence.place.line, divergence.told_place) == (1, parts[1])


def test_what_is_only_printed_comes_after_what_reached_more() -> None:
    lines: list[tuple[int, Values, Values, Values, Values]] = [
        (1, {}, {"started": "a1"}, {}, {"started": "b1"}),
        (2, {}, {"seed": "a2"}, {}, {"seed": "b2"}),
        (30, {"started": "a1"}, {"started": "a1"}, {"started": "b1"}, {"started": "b1"}),
    ]
    lines += [(line, {"seed": "a2"}, {"seed": "a2"}, {"seed": "b2"}, {"seed": "b2"}) for line in range(3, 25)]
    assert [line for line, _ in both(*lines)] == [2, 1]


def test_the_line_that_returned_it_is_the_entry_and_its_caller_has_the_name() -> None:
    runs = Run(), Run()
    for run, value in zip(runs, ("a", "b"), strict=True):
        run.add(11, {}, {RETURNED: value}, number=2, up=1)
        run.add(1, {}, {"number": value}, number=1)
        run.add(2, {"number": value}, {"number": value}, number=3)
    assert found(*runs) == [(11, ["number"])]


def test_what_a_function_was_given_comes_from_the_statement_that_called_it() -> None:
    runs = Run(), Run()
    for run, value in zip(runs, ("a", "b"), strict=True):
        run.add(10, {}, {"seed": value}, kind="call", number=2, up=1)
        run.add(11, {"seed": value}, {"seed": value}, number=3, up=1)
        run.add(1, {"model": "m"}, {"model": "m"}, number=1)
    assert found(*runs) == [(1, ["seed"])]


def test_who_has_a_value_of_another_thread_is_no_entry() -> None:
    runs = Run(), Run()
    for run, value in zip(runs, ("a", "b"), strict=True):
        run.add(10, {}, {RETURNED: value}, thread="worker")
        run.add(1, {"queue": "q"}, {"item": value})
        run.add(2, {"item": value}, {"item": value})
    assert found(*runs) == [(10, ["item"])]


def test_what_comes_out_of_a_queue_in_another_order_comes_from_where_it_was_made() -> None:
    """Batches that differ are no work of the line that takes them, though each takes another one first."""
    a, b = Run(), Run()
    for run, drawn in ((a, "pq"), (b, "rs")):
        for value in drawn:
            run.add(3, {}, {"batch": value}, thread="worker")
    a.add(9, {}, {"item": "p"})
    b.add(9, {}, {"item": "s"})
    a.add(10, {"item": "p"}, {})
    b.add(10, {"item": "s"}, {})
    assert found(a, b) == [(3, ["batch"])]


def test_equal_values_that_come_in_another_order_differ_where_they_are_taken() -> None:
    a, b = Run(), Run()
    for run, order in ((a, "pq"), (b, "qp")):
        for value in "pq":
            run.add(3, {}, {"batch": value}, thread="worker")
        for value in order:
            run.add(9, {}, {"item": value})
            run.add(10, {"item": value}, {})
    assert found(a, b) == [(9, ["item"])]


def test_values_that_both_runs_have_say_nothing_of_where_the_order_came_from() -> None:
    a, b = Run(), Run()
    for run, order in ((a, "pqr"), (b, "qrp")):
        for value in order:
            run.add(3, {}, {"batch": value}, thread="worker")
    for run, value in ((a, "p"), (b, "r")):
        run.add(9, {}, {"item": value})
        run.add(10, {"item": value}, {})
    assert (9, ["item"]) in found(a, b)


def test_small_numbers_that_only_one_run_has_are_no_trail() -> None:
    a, b = Run(), Run()
    for run, values in ((a, "12"), (b, "34")):
        for value in values:
            run.add(3, {}, {"number": value}, thread="worker")
    for run, value in ((a, "1"), (b, "4")):
        run.add(9, {"number": value}, {})
    one, other = ([LineStream(("", "", "MainProcess", "train.py"), tuple(run.records))] for run in (a, b))
    [divergence] = follow(one, other).divergences
    assert 9 not in {each.line for each in divergence.reached}


def test_a_whole_number_that_differs_by_itself_was_not_chosen() -> None:
    a, b = Run(), Run()
    for run, seed in ((a, "5"), (b, "6")):
        run.add(1, {}, {"seed": seed})
        run.add(2, {"seed": seed}, {})
    one, other = ([LineStream(("", "", "MainProcess", "train.py"), tuple(run.records))] for run in (a, b))
    assert follow(one, other).decisions == []


def test_an_object_that_changed_on_its_way_to_another_thread_comes_from_who_handed_it_over() -> None:
    runs = Run(), Run()
    for run, value in zip(runs, ("a", "b"), strict=True):
        run.add(1, {}, {"weights": "w"}, kind="call", number=1, objects={"weights": (77,)})
        run.add(11, {"queue": "q"}, {"job": value}, number=2, objects={"job": (99, 77)}, thread="writer")
        run.add(2, {"weights": "w"}, {"weights": "w"}, number=3, objects={"weights": (77,)})
        run.add(12, {"job": value}, {}, thread="writer")
    one, other = ([LineStream(("", "", "MainProcess", "train.py"), tuple(run.records))] for run in runs)
    [divergence] = follow(one, other).divergences
    assert (divergence.place.line, divergence.told_place.line, divergence.name, divergence.names) == (
        11,
        2,
        "weights",
        ["job"],
    )


def test_an_object_that_a_thread_changes_itself_was_not_handed_over() -> None:
    runs = Run(), Run()
    for run, value in zip(runs, ("a", "b"), strict=True):
        run.add(1, {"rows": "r"}, {"rows": "r"}, objects={"rows": (77,)})
        run.add(2, {"rows": "r"}, {"rows": value}, objects={"rows": (77,)})
        run.add(3, {"rows": value}, {})
    one, other = ([LineStream(("", "", "MainProcess", "train.py"), tuple(run.records))] for run in runs)
    assert [each.handed for each in follow(one, other).divergences] == [None]


def test_what_a_statement_called_before_may_have_made_what_it_gives_on() -> None:
    runs = Run(), Run()
    for run, value in zip(runs, ("a", "b"), strict=True):
        run.add(11, {}, {RETURNED: value}, number=2, up=1)
        run.add(20, {}, {"model": f"m{value}"}, kind="call", number=3, up=1)  # made of what it returned
        run.add(21, {"model": f"m{value}"}, {}, number=4, up=1)
        run.add(1, {}, {}, number=1)
    assert [line for line, _ in found(*runs)] == [11]


def test_a_number_that_is_equal_by_chance_is_no_trail() -> None:
    runs = Run(), Run()
    for run, value in zip(runs, ("1", "2"), strict=True):
        run.add(1, {}, {"printed": value})
        run.add(2, {"printed": value}, {"printed": value})
        run.add(5, {}, {"order": value})
        run.add(6, {"order": value}, {"order": value})
    assert [line for line, _ in found(*runs)] == [1, 5]


def test_draws_of_a_generator_come_from_its_seed_and_unseeded_ones_from_nothing() -> None:
    seeded, unseeded = (Run(), Run()), (Run(), Run())
    for run, value in zip(seeded, ("a", "b"), strict=True):
        run.add(1, {}, {"seed": value})
        run.add(2, {"seed": value}, {"seed": value}, drew={"torch": ("", value)})
        run.add(3, {}, {"weights": f"w{value}"}, drew={"torch": (value, f"n{value}")})
        run.add(4, {"weights": f"w{value}"}, {"weights": f"w{value}"})
    assert [line for line, _ in found(*seeded)] == [1]
    for run, value in zip(unseeded, ("a", "b"), strict=True):
        run.add(3, {}, {"weights": f"w{value}"}, drew={"torch": (value, f"n{value}")})
        run.add(4, {"weights": f"w{value}"}, {"weights": f"w{value}"})
    assert found(*unseeded) == [(3, ["weights"])]


def test_a_seed_that_is_drawn_where_it_is_given_is_the_entry() -> None:
    runs = Run(), Run()
    for run, value in zip(runs, ("a", "b"), strict=True):
        run.add(2, {}, {}, drew={"random": ("s", value)})
        run.add(3, {}, {"weights": f"w{value}"}, drew={"random": (value, f"n{value}")})
        run.add(4, {"weights": f"w{value}"}, {"weights": f"w{value}"})
    assert [line for line, _ in found(*runs)] == [2]


def test_where_the_runs_do_other_things_the_statement_before_is_an_entry() -> None:
    a, b = Run(), Run()
    for run, taken in ((a, True), (b, False)):
        run.add(1, {}, {"rest": "r"}, kind="branch")
        if taken:
            run.add(2, {}, {"batch": "x"})
        for line in (4, 5, 6):
            run.add(line, {"batch": "x" if taken else "y"}, {})
    assert [line for line, _ in found(a, b)] == [1]


def test_what_differs_after_the_runs_did_other_things_comes_after_what_did_before() -> None:
    a, b = Run(), Run()
    for run, steps in ((a, 1), (b, 2)):
        run.add(1, {}, {"now": f"t{steps}"})
        for step in range(steps):
            run.add(2, {"now": f"t{steps}"}, {}, kind="branch")
            run.add(9, {}, {}, drew={"torch": (f"s{step}", f"s{step + 1}")})
        run.add(2, {"now": f"t{steps}"}, {}, kind="branch")
        run.add(4, {}, {"order": f"o{steps}"}, drew={"torch": (f"s{steps}", "e")})
        run.add(5, {}, {"other": f"x{steps}"})
        for line in range(6, 30):
            run.add(line, {"order": f"o{steps}", "other": f"x{steps}"}, {})
    one, other = ([LineStream(("", "", "MainProcess", "train.py"), tuple(run.records))] for run in (a, b))
    followed = follow(one, other)
    assert [each.place.line for each in followed.divergences] == [1, 5]
    assert [(each.place.line, [p.line for p in each.came_from]) for each in followed.decisions] == [(2, [1])]


def test_whole_numbers_that_come_of_times_were_chosen_by_them() -> None:
    """As the fastest of several sizes; what is computed of times has parts of a second."""
    a, b = Run(), Run()
    for run, cost, best in ((a, "{8: 0.25, 16: 0.5}", "8"), (b, "{8: 0.5, 16: 0.25}", "16")):
        run.add(1, {}, {"cost": cost})
        run.add(2, {"cost": cost}, {"total": cost[-5:]})
        run.add(3, {"cost": cost}, {"best": best})
        run.add(4, {"best": best}, {})
    one, other = ([LineStream(("", "", "MainProcess", "train.py"), tuple(run.records))] for run in (a, b))
    [decision] = follow(one, other).decisions
    assert (decision.place.line, [each.line for each in decision.came_from]) == (3, [1])


def test_what_a_called_function_returned_decides() -> None:
    a, b = Run(), Run()
    for run, over in ((a, "0"), (b, "1")):
        run.add(1, {}, {"deadline": f"t{over}"}, number=1)
        run.add(20, {"deadline": f"t{over}"}, {RETURNED: over}, number=3, up=2)
        run.add(2, {"deadline": f"t{over}"}, {}, kind="branch", number=2)
        if over == "0":
            run.add(3, {}, {}, number=4)
        for line in (5, 6, 7):
            run.add(line, {}, {}, number=line)
    one, other = ([LineStream(("", "", "MainProcess", "train.py"), tuple(run.records))] for run in (a, b))
    [decision] = follow(one, other).decisions
    assert (decision.place.line, [each.line for each in decision.came_from]) == (20, [1])


def test_a_statement_that_read_what_nobody_was_seen_to_make_comes_last() -> None:
    assert [
        line
        for line, _ in both(
            (1, {"hidden": "a"}, {"hidden": "c"}, {"hidden": "b"}, {"hidden": "d"}),
            (2, {}, {"x": "e"}, {}, {"x": "f"}),
            (3, {"x": "e"}, {}, {"x": "f"}, {}),
            (4, {"hidden": "c"}, {}, {"hidden": "d"}, {}),
        )
    ] == [2, 1]


def test_processes_are_side_by_side_by_what_they_are() -> None:
    def streams(value: str, names: Sequence[str]) -> list[LineStream]:
        run = Run()
        run.add(1, {}, {"x": value})
        run.add(2, {"x": value}, {})
        return [LineStream(("", "", name, "train.py"), tuple(run.records)) for name in names]

    assert not follow(streams("a", ["Process-1"]), streams("b", ["Process-2"])).divergences
    assert [
        each.place.line
        for each in follow(streams("a", ["Process-2", "Process-1"]), streams("b", ["Process-1"])).divergences
    ] == [1]


def stream(run: Run) -> LineStream:
    return LineStream(("", "", "MainProcess", "train.py"), tuple(run.records))


def test_a_generator_that_threads_draw_from_in_turn_is_shared() -> None:
    one = Run()
    one.add(1, {}, {"rng": "made"}, generators=())
    for number, thread in enumerate(("a", "b", "a", "b"), 1):
        before = "made" if number == 1 else f"state {number - 1}"
        one.add(9, {"rng": before}, {"rng": f"state {number}"}, thread=thread, generators=("rng",))
    assert [(place.line, by) for place, by in shared_generators([stream(one)])] == [(9, None)]
    called = Run()
    for number, thread in enumerate(("a", "b", "a", "b"), 1):
        called.add(5, {}, {}, number=10 * number, thread=thread)
        before = "made" if number == 1 else f"state {number - 1}"
        after = {"rng": f"state {number}"}
        called.add(9, {"rng": before}, after, up=10 * number, thread=thread, generators=("rng",))
    assert [(place.line, by and by.line) for place, by in shared_generators([stream(called)])] == [(9, 5)]


@pytest.mark.parametrize(
    "turns",
    [
        [("MainThread", "rng", 0), ("a", "rng", 1), ("a", "rng", 2)],  # handed on once
        [("a", "one", 0), ("b", "other", 10), ("a", "one", 1), ("b", "other", 11)],  # each has its own
    ],
)
def test_a_generator_of_one_thread_is_not_shared(turns: list[tuple[str, str, int]]) -> None:
    one = Run()
    for thread, name, state in turns:
        one.add(9, {name: f"{state}"}, {name: f"{state + 1}"}, thread=thread, generators=(name,))
    assert not shared_generators([stream(one)])


def test_what_a_library_computes_in_threads_has_the_name_that_its_caller_gives_it() -> None:
    """Which thread gets which task is another in each run, so nothing can be given to what they call."""
    runs = Run(), Run()
    for run, each in zip(runs, "ab", strict=True):
        run.add(75, {}, {"hour": f"{each} in a thread"}, kind="call", number=2, up=1, thread="Pool_0")
        # What the library caches in the table does not count beside what is returned.
        run.add(98, {"grouped": "x"}, {"grouped": f"x of {each}", RETURNED: f"rows of {each}"}, number=1)
        run.add(122, {"data": "x"}, {"estimates": f"rows of {each}"}, number=3)
        run.add(123, {"estimates": f"rows of {each}"}, {"estimates": f"rows of {each}"}, number=4)
    assert found(*runs) == [(98, ["estimates"])]


def test_what_came_from_harmless_lines_alone_counts_as_equal() -> None:
    runs = Run(), Run()
    for run, each in zip(runs, "ab", strict=True):
        run.add(1, {}, {"table": f"{each} named"})
        run.add(2, {"table": f"{each} named"}, {"rows": f"{each} rows"})
        run.add(3, {"rows": f"{each} rows"}, {"total": f"{each} total"})
    assert found(*runs) == [(1, ["table"])]
    one, other = ([LineStream(("", "", "MainProcess", "train.py"), tuple(run.records))] for run in runs)
    [place] = [record.place for record in runs[0].records if record.place.line == 1]
    behind = follow(one, other, harmless=frozenset((place,))).divergences
    assert [(each.place.line, each.sure) for each in behind] == [(2, True)]


def test_what_a_statement_changes_counts_where_nothing_that_it_returns_has_a_name() -> None:
    runs = Run(), Run()
    for run, each in zip(runs, "ab", strict=True):
        run.add(3, {"pool": "x"}, {"pool": f"x of {each}", RETURNED: f"{each} returned"})
        run.add(4, {"pool": f"x of {each}"}, {"pool": f"x of {each}"})
    assert found(*runs) == [(3, ["pool"])]


def test_who_takes_another_of_the_values_that_both_runs_have_decides() -> None:
    runs = Run(), Run()
    for run, seconds, plan in zip(runs, ("first", "second"), ("split", "whole"), strict=True):
        run.add(1, {}, {"split": "split", "whole": "whole"})
        run.add(2, {}, {"took": seconds})
        run.add(3, {"took": seconds}, {"best": f"shortest of {seconds}"})
        run.add(4, {"took": seconds}, {"plan": plan})
        run.add(5, {"plan": plan}, {})
    one, other = ([stream(run)] for run in runs)
    assert [each.place.line for each in follow(one, other).decisions] == [4]
