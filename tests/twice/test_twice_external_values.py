"""Values from outside of the computation: clocks, names, other processes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reprobuild.in_image.twice import orders
from reprobuild.twice import known_causes, known_operations
from reprobuild.twice.causes import find_cause
from reprobuild.twice.external_values import BY_NUMBER, Candidate, _out_of_turn, differing, hints_near
from reprobuild.twice.records import ProgramLine, Source, Stream
from support.streams import PARTING, at, backward, cause, op, stream


def test_seeds_in_another_order_are_led_back_to_what_orders_them() -> None:
    tasks = ("the order in which tasks end", at(8), None)

    def run(seeds: str) -> Stream:
        calls = [Source("seed", "torch.Generator.manual_seed", seed, seed, at(2)) for seed in seeds]
        drawn = op(3, f"a{seeds}", (f"{seeds}{seeds}", -2), name="randn.generator", sources=len(seeds))
        return replace(stream(drawn, backward(f"b{seeds}", (f"a{seeds}", 0)), sources=calls), hints=[tasks])

    found = cause(run("12"), run("21"))
    assert (found.kind, [each.place.line for each in found.candidates]) == ("random", [8, 2])
    assert found.remedy == known_causes.FLOW
    assert found.told.endswith("torch.Generator.manual_seed was called with the same values in another order")
    assert [each.place.line for each in cause(run("12"), run("13")).candidates] == [2]


def test_what_an_operation_of_the_programs_own_takes_from_outside_while_it_runs_is_told() -> None:
    def run(x: str, name: str) -> Stream:
        calls = [Source("clock", "time.time", f"{x}{line}", x, at(line)) for line in (1, 4, 9)]
        return stream(
            op(2, "aa", sources=1),
            op(3, f"b{x}", ("aa", 0), name=name, sources=2),
            backward(f"c{x}", (f"b{x}", 1)),
            sources=calls,
        )

    own = cause(run("0", "mine::dither.default"), run("1", "mine::dither.default"))
    assert (own.kind, [each.place.line for each in own.candidates]) == ("operation", [4])
    assert own.remedy == known_causes.SOURCES["clock"]
    torchs = cause(run("0", "index_put.default"), run("1", "index_put.default"))
    assert (torchs.candidates, torchs.remedy) == ((), known_operations.of_operation("index_put.default"))


def test_what_a_process_reads_of_others_is_no_cause_before_what_these_do() -> None:
    def run(x: str) -> list[Stream]:
        main = stream(op(1, f"a{x}", (f"{x}{x}", -1)))
        child = stream(
            op(0, "e0"), op(5, f"b{x}", (f"{x}{x}", -1)), backward(f"c{x}", (f"b{x}", 1)), rank="1"
        )
        return [main, child]

    parting = replace(PARTING, stream=run("0")[1].label)
    assert cause(run("0"), run("1"), parting).place.line == 5
    drawn = [stream(op(1, f"a{x}", (f"{x}{x}", -2))) for x in "01"]
    assert cause([drawn[0], run("0")[1]], [drawn[1], run("1")[1]], parting).place.line == 1


def test_listed_names_that_were_drawn_are_led_back_to_the_draw() -> None:
    def run(x: str, name: str) -> Stream:
        calls = [
            Source("name", "tempfile.NamedTemporaryFile", x, f"'/d/tmp{x * 8}'", at(4)),
            Source("listing", "os.listdir", x, f"['{name}{x * 8}']", at(7)),
        ]
        read = op(7, f"a{x}", (f"{x}{x}", -1), sources=2)
        return stream(read, backward(f"b{x}", (f"a{x}", 0)), sources=calls)

    def lines(name: str) -> list[int]:
        return [each.place.line for each in cause(run("0", name), run("1", name)).candidates]

    assert lines("tmp") == [4, 7]
    assert lines("part") == [7, 4]


def test_a_clock_elsewhere_is_a_candidate_without_why_and_remedy() -> None:
    def run(x: str, kind: str) -> Stream:
        taken = op(3, f"a{x}", (f"{x}{x}", -1), name="lift_fresh.default", sources=1)
        call = Source(kind, "call", x, x, at(2))
        return stream(taken, backward(f"b{x}", (f"a{x}", 0)), sources=[call])

    clock = cause(run("0", "clock"), run("1", "clock"))
    assert (clock.proven, [each.place.line for each in clock.candidates]) == (False, [2])
    assert cause(run("0", "draw"), run("1", "draw")).proven


def test_a_seed_of_a_rank_comes_before_what_only_moves_its_values() -> None:
    def run(x: str, *seeds: Source) -> Stream:
        received = op(1, "", ("aa", -1), name="broadcast_.default", empty=True)
        return stream(
            received, op(2, f"b{x}", (f"a{x}", 0)), backward(f"c{x}", (f"b{x}", 1)), sources=[*seeds]
        )

    assert cause(run("0"), run("1")).remedy == known_operations.MOVED
    drawn = [
        (Source("entropy", "os.urandom", x, x, at(7)), Source("seed", "torch.manual_seed", x, x, at(8)))
        for x in ("0", "1")
    ]
    found = cause(run("0", *drawn[0]), run("1", *drawn[1]))
    assert (found.kind, [each.place.line for each in found.candidates]) == ("source", [7, 8])


def test_a_generator_that_nobody_seeds_does_not_come_from_a_clock_before_it() -> None:
    def run(x: str) -> Stream:
        calls = [
            Source("clock", "time.time", x, f"17{x}", at(2)),
            Source("draw", "numpy.random.default_rng", x, f"('none given', b'{x}')", at(3)),
            Source("clock", "time.time", x, f"18{x}", at(4)),
        ]
        return stream(op(1, "aa"), sources=calls)

    found = cause(run("0"), run("1"))
    assert (found.place.line, found.proven) == (3, False)  # each clock may be it, too


def test_a_seed_is_led_back_to_the_draw_that_gave_it_though_a_clock_was_read_since() -> None:
    def run(seed: str, second: str) -> Stream:
        calls = [
            Source("draw", "numpy.random.randint", seed, seed, at(9)),
            Source("clock", "time.perf_counter", second, f"{second}.25", at(12)),
            Source("seed", "torch.Generator.manual_seed", seed, f"({seed},)", at(23)),
        ]
        drawn = op(30, f"a{seed}", (f"{seed}{seed}", -2), name="randperm.generator", sources=3)
        return stream(drawn, backward(f"b{seed}", (f"a{seed}", 0)), sources=calls)

    assert [each.place.line for each in cause(run("71", "3"), run("55", "4")).candidates] == [9, 23]
    # What happens to be a part of a longer number is not what was given.
    assert [each.place.line for each in cause(run("71", "7"), run("55", "5")).candidates] == [9, 23]


def test_a_table_from_another_table_is_no_candidate() -> None:
    def run(x: str) -> Stream:
        tables = [f"a table {x}1 from 0", f"a table {x}2 from {x}1"]
        calls = [Source("computed", f"polars.f{n}", shown, shown, at(n)) for n, shown in enumerate(tables)]
        return stream(
            op(9, f"b{x}", (f"{x}{x}", -1), sources=2), backward(f"c{x}", (f"b{x}", 0)), sources=calls
        )

    found = cause(run("0"), run("1"))
    assert [each.name for each in found.candidates] == ["polars.f0"]
    assert (found.proven, found.remedy) == (True, known_causes.SOURCES["computed"])


def test_the_random_part_of_a_folders_name_that_is_cut_off_is_no_other_file() -> None:
    def run(x: str) -> Stream:
        calls = [
            Source("file", "open", shown, shown, at(3)) for shown in (f"'/scratch/tmp{x}k", "'/data/a.csv'")
        ]
        return stream(
            op(9, f"b{x}", (f"{x}{x}", -1), sources=2), backward(f"c{x}", (f"b{x}", 0)), sources=calls
        )

    assert cause(run("8i"), run("uh")).candidates == ()
    assert cause(run("8i"), run("/uh")).candidates != ()


def test_that_another_file_was_opened_is_no_cause_by_itself() -> None:
    def run(x: str) -> Stream:
        calls = [Source("file", "open", f"'/data/{x}'", f"'/data/{x}'", at(3))]
        return stream(
            op(9, f"b{x}", (f"{x}{x}", -1), sources=1), backward(f"c{x}", (f"b{x}", 0)), sources=calls
        )

    found = cause(run("a"), run("b"))
    assert ([each.kind for each in found.candidates], found.proven) == (["file"], False)
    without = find_cause([replace(run("a"), operations=[])], [replace(run("b"), operations=[])], PARTING)
    assert without is not None
    assert not without.proven


def test_generators_that_threads_make_in_another_order_are_no_draws_out_of_turn() -> None:
    def run(lines: tuple[int, int], x: str) -> Stream:
        made = [Source("draw", "numpy.random.default_rng", f"{line}", f"{line}", at(line)) for line in lines]
        return stream(op(3, f"b{x}"), backward(f"c{x}", (f"b{x}", 0)), sources=made)

    assert _out_of_turn(run((4, 5), "0"), run((5, 4), "1")) == []
    draws = [stream(sources=[Source("draw", "numpy.random.rand", "1", "1", at(line))]) for line in (4, 5)]
    [drawn] = _out_of_turn(draws[0], draws[1])
    assert drawn.place == at(4)


def test_of_other_processes_the_hints_count_that_few_programs_have() -> None:
    common, clock = ("the order of a set", at(5), None), ("the clock of a database", at(8), at(9))
    own = replace(stream(), hints=[("the order of a set", at(3), None)])
    other = replace(stream(), hints=[common, clock])
    assert [(each.name, each.place.line) for each in hints_near(own, at(2), [own, other])] == [
        ("the clock of a database", 8),
        ("the order of a set", 3),
    ]


@pytest.mark.parametrize("name", BY_NUMBER)
def test_who_is_first_may_come_more_often_or_be_the_last(name: str) -> None:
    """A worker that is faster sends more, or the first one ends the search. What a queue gives has to be the
    same in both runs.
    """

    def taken(name: str, *numbers: int) -> Stream:
        return replace(stream(), sources=[Source("order", name, f"{n}", f"{n}", at(7)) for n in numbers])

    found = differing([(taken(name, 0, 1, 2), taken(name, 0, 2, 0))])
    assert [(each.kind, each.place) for each in found] == [("order", at(7))]
    assert differing([(taken("Queue.get", 0, 1, 2), taken("Queue.get", 0, 2, 0))]) == []
    watched = (orders.WAIT, orders.ASYNCIO_WAIT, orders.CONNECTION_WAIT)
    assert {*watched} < {*BY_NUMBER}


@pytest.mark.parametrize(
    ("beside", "is_zero"),
    [
        ("if self.random_state:", True),
        ("rng = RandomState(seed) if seed else RandomState()", True),
        ("seed = seed or None", True),
        ("if not args.seed and fresh:", True),
        ("if seed is not None:", False),
        ("model = train(seed=args.seed or None)", False),  # which may have been None
        ("train(seed=seed)", False),
        ("if seeds_differ(a):", False),
    ],
)
def test_where_a_seed_of_0_counts_as_none_the_remedy_is_to_compare_it(beside: str, *, is_zero: bool) -> None:
    at = ProgramLine("train.py", 9, "main", beside)
    given = Candidate("draw", "numpy.random.randint", replace(at, line=7), ("1", "2"), 0, 0, made_for=at)
    assert (given.remedy is known_causes.ZERO) is is_zero
    assert replace(given, kind="clock").remedy is known_causes.SOURCES["clock"]
