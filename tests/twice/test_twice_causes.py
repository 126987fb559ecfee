"""Which operation is the first that differs, from the streams of two runs as a trace has them."""

from __future__ import annotations

from dataclasses import replace

from reprobuild.twice import known_causes, known_operations
from reprobuild.twice.cause_report import cause_rows
from reprobuild.twice.causes import find_cause
from reprobuild.twice.external_values import READ
from reprobuild.twice.first_difference import Parting
from reprobuild.twice.records import Source, Stream
from support.streams import PARTING, at, backward, cause, op, stream


def test_the_first_with_equal_inputs_and_another_output_is_it_and_no_later_one() -> None:
    def run(x: str) -> Stream:
        return stream(
            op(1, "aa", name="ones.default"),
            op(2, f"b{x}", ("aa", 0), name="index_put.default"),
            op(3, f"c{x}", (f"b{x}", 1)),
            backward(f"d{x}", (f"c{x}", 2)),
        )

    found = cause(run("0"), run("1"))
    assert (found.kind, found.operation, found.place.line) == ("operation", "index_put.default", 2)
    assert found.told == "its inputs were equal and its output was not"


def test_what_no_backward_pass_comes_from_is_passed_over() -> None:
    def run(x: str) -> Stream:
        return stream(
            op(1, f"f{x}", name="printed.default"),
            op(2, f"a{x}", name="learned.default"),
            backward(f"b{x}", (f"a{x}", 1)),
        )

    assert cause(run("0"), run("1")).place.line == 2


def test_a_draw_that_became_a_number_comes_before_one_that_was_overwritten() -> None:
    def run(x: str) -> Stream:
        return stream(
            op(1, f"a{x}", (f"{x}{x}", -2), name="uniform_.default"),
            op(2, "c0", (f"a{x}", 0), name="copy_.default"),
            op(3, f"d{x}", (f"{x}{x}", -2), name="random_.default"),
            op(3, f"e{x}", (f"d{x}", 2), name="_local_scalar_dense.default"),
            op(4, f"f{x}", (f"{x}f", -1), name="stack.default"),
            backward(f"b{x}", (f"f{x}", 4), ("c0", 1)),
        )

    found = cause(run("0"), run("1"))
    assert (found.kind, found.operation, found.place.line) == ("random", "random_.default", 3)


def test_initial_weights_that_others_were_loaded_over_are_passed_over() -> None:
    def run(x: str, *, loaded: bool) -> Stream:
        return stream(
            op(1, f"a{x}", (f"{x}{x}", -2), name="randn.default"),
            op(1, f"b{x}", (f"a{x}", 0), name="mul.Tensor"),
            op(2, "c0" if loaded else f"c{x}", ("00", -1), name="copy_.default"),
            op(3, f"d{x}", ("e0", -1), (f"{x}{x}", -2), name="dropout.default"),
            op(4, f"f{x}", (f"d{x}", 3), ("c0", 2) if loaded else (f"b{x}", 1), name="linear.default"),
        )

    for loaded, line in ((True, 3), (False, 1)):
        found = cause(run("0", loaded=loaded), run("1", loaded=loaded))
        assert (found.kind, found.place.line) == ("random", line)


def test_of_two_that_reach_the_backward_pass_the_earlier_is_it() -> None:
    def run(x: str) -> Stream:
        return stream(
            op(1, f"a{x}"),
            op(2, f"b{x}"),
            op(3, f"c{x}", (f"a{x}", 0), (f"b{x}", 1)),
            backward(f"d{x}", (f"c{x}", 2)),
        )

    assert cause(run("0"), run("1")).place.line == 1


def test_other_inputs_with_the_same_output_are_no_difference() -> None:
    def run(x: str) -> Stream:
        return stream(op(1, "a0", (f"{x}{x}", -1)), op(2, f"b{x}"), backward(f"c{x}", (f"b{x}", 1)))

    assert cause(run("0"), run("1")).place.line == 2


def test_memory_that_was_read_before_it_was_written() -> None:
    def run(x: str) -> Stream:
        return stream(
            op(1, "", name="empty.memory_format", empty=True),
            op(2, f"b{x}", (f"a{x}", 0)),
            backward(f"c{x}", (f"b{x}", 1)),
        )

    found = cause(run("0"), run("1"))
    assert (found.kind, found.place.line, found.remedy) == ("uninitialised", 1, known_causes.UNINITIALISED)


def test_a_draw_from_a_generator_in_another_state_is_led_back_to_its_seed() -> None:
    def run(x: str) -> Stream:
        seeds = [
            Source("clock", "time.time_ns", x, f"17{x}", at(4)),
            Source("seed", "torch.manual_seed", x, f"(17{x},)", at(5)),
        ]
        drawn = op(6, f"a{x}", (f"{x}{x}", -2), name="randn.default", sources=2)
        return stream(drawn, backward(f"b{x}", (f"a{x}", 0)), sources=seeds)

    found = cause(run("0"), run("1"))
    assert (found.kind, found.place.line) == ("random", 6)
    assert [each.place.line for each in found.candidates] == [4, 5]
    assert found.remedy == known_causes.SOURCES["clock"]


def test_of_a_draw_in_a_constructor_who_makes_the_object_is_told_too() -> None:
    def run(x: str, name: str = "randn.default") -> Stream:
        drawn = op(6, f"a{x}", (f"{x}{x}", -2), name=name, made_at=at(40, "model = Net()"))
        return stream(drawn, backward(f"b{x}", (f"a{x}", 0)))

    found = cause(run("0"), run("1"))
    assert (found.place, found.made_at) == (at(6), at(40, "model = Net()"))
    assert ("first draw", "randn.default, /code/train.py:6, for /code/train.py:40: `model = Net()`") in [
        *cause_rows(found)
    ]


def test_what_was_taken_after_the_operation_is_no_candidate() -> None:
    def run(x: str) -> Stream:
        calls = [Source("clock", "time.time", x, x, at(2)), Source("clock", "time.time", x, x, at(8))]
        taken = op(3, f"a{x}", (f"{x}{x}", -1), name="lift_fresh.default", sources=1)
        return stream(taken, backward(f"b{x}", (f"a{x}", 0)), sources=calls)

    found = cause(run("0"), run("1"))
    assert (found.kind, [each.place.line for each in found.candidates]) == ("outside", [2])


def test_another_path_is_told_with_the_last_common_point() -> None:
    one = stream(op(1, "aa"), op(2, "bb"), op(3, "cc"))
    other = stream(op(1, "aa"), op(2, "bb"), op(4, "cc"))
    found = cause(one, other)
    assert found.kind == "flow"
    assert found.told.endswith("the last common point is mul.Tensor at /code/train.py:2")
    assert cause(stream(op(1, "aa"), op(2, "bb")), stream(op(1, "aa"))).told.endswith("run 2 ended before")


def test_a_thread_that_writes_what_another_reads_is_named_by_its_line() -> None:
    def run(x: str) -> Stream:
        return stream(
            op(1, "a0", name="lerp_.Scalar", thread="Thread-1"),
            op(2, f"b{x}", (f"a{x}", 0)),
            backward(f"c{x}", (f"b{x}", 1)),
        )

    found = cause(run("0"), run("1"))
    assert (found.kind, found.place.line, found.thread, found.remedy) == (
        "race",
        1,
        "Thread-1",
        known_causes.THREADS,
    )


def test_a_thread_that_reads_what_another_writes_is_named_too() -> None:
    def run(x: str) -> Stream:
        return stream(op(1, "a0", name="add_.Tensor"), op(2, f"b{x}", (f"a{x}", 0), thread="Thread-1"))

    found = cause(run("0"), run("1"))
    assert (found.kind, found.place.line) == ("race", 2)


def test_the_rank_that_made_it_comes_before_those_that_received_it() -> None:
    def rank(number: int, x: str) -> Stream:
        if number == 0:
            received = op(1, "", ("aa", -1), name="allreduce_.default", empty=True)
            return stream(received, op(2, f"b{x}", (f"a{x}", 0)), backward(f"c{x}", (f"b{x}", 1)), rank="0")
        made = [op(3, "aa"), op(4, "bb"), op(5, f"d{x}", ("bb", 1), name="index_add.default")]
        return stream(*made, backward(f"e{x}", (f"d{x}", 2)), rank="1")

    found = cause([rank(0, "0"), rank(1, "0")], [rank(0, "1"), rank(1, "1")])
    assert (found.stream, found.operation) == ("rank 1", "index_add.default")
    alone = cause([rank(0, "0")], [rank(0, "1")])
    assert (alone.kind, alone.operation, alone.remedy) == (
        "operation",
        "allreduce_.default",
        known_operations.COLLECTIVE,
    )


def test_a_worker_of_a_loader_is_looked_at_only_where_the_batch_parted() -> None:
    def runs(x: str) -> list[Stream]:
        main = stream(op(1, f"a{x}"), backward(f"b{x}", (f"a{x}", 0)))
        return [main, stream(op(2, f"c{x}"), worker="0")]

    assert cause(runs("0"), runs("1")).place.line == 1
    batch = Parting(kind="value", stream="", moment=0, label="step 0 (SGD)", part="batch")
    assert cause(runs("0"), runs("1"), batch).place.line == 2


def test_without_an_operation_that_differs_it_is_what_came_from_outside_or_nothing() -> None:
    def run(x: str) -> Stream:
        return stream(op(1, "aa"), sources=[Source("clock", "time.time", x, x, at(2))])

    found = cause(run("0"), run("1"))
    assert (found.kind, found.place.line) == ("source", 2)
    assert find_cause([run("0")], [run("0")], PARTING) is None


def test_a_view_of_memory_that_nobody_wrote_does_not_read_it() -> None:
    def run(x: str) -> Stream:
        return stream(
            op(1, "", name="empty.memory_format", empty=True),
            op(2, "", (f"a{x}", 0), name="as_strided.default", empty=True),
            op(3, f"c{x}", name="index_put.default"),
            op(4, f"d{x}", (f"b{x}", 1), (f"c{x}", 2)),
            backward(f"e{x}", (f"d{x}", 3)),
        )

    assert cause(run("0"), run("1")).place.line == 3

    def read(x: str) -> Stream:
        first, view, *_ = run(x).operations
        return stream(first, view, op(3, f"c{x}", (f"b{x}", 1)), backward(f"d{x}", (f"c{x}", 2)))

    found = cause(read("0"), read("1"))
    assert (found.kind, found.place.line) == ("uninitialised", 1)


def test_a_generator_that_a_library_seeds_is_told_with_what_came_before() -> None:
    def run(x: str, name: str) -> Stream:
        drawn = op(6, f"a{x}", (f"{x}{x}", -2), name=name)
        calls = [Source("clock", "time.time_ns", x, x, at(4))]
        return stream(drawn, backward(f"b{x}", (f"a{x}", 0)), sources=calls)

    given = cause(run("0", "randperm.generator"), run("1", "randperm.generator"))
    assert [each.place.line for each in given.candidates] == [4]
    shared = cause(run("0", "randn.default"), run("1", "randn.default"))
    assert (shared.candidates, shared.remedy) == ((), known_causes.RANDOM)


def test_a_number_that_left_torch_by_item_is_led_back_to_where_it_was_made() -> None:
    def run(x: str, reader: str) -> Stream:
        return stream(
            op(1, f"a{x}", (f"{x}{x}", -2), name="randint.low"),
            op(2, f"b{x}", (f"a{x}", 0), name=reader),
            op(3, f"c{x}", plain=x, name="select.int"),
            backward(f"d{x}", (f"c{x}", 2)),
        )

    item = "_local_scalar_dense.default"
    assert cause(run("0", item), run("1", item)).place.line == 1
    assert cause(run("0", "mul.Tensor"), run("1", "mul.Tensor")).place.line == 3


def test_what_inherits_a_difference_is_no_cause_of_another() -> None:
    def run(x: str) -> Stream:
        return stream(
            op(1, f"a{x}", (f"{x}{x}", -2), name="randn.default"),
            op(2, f"b{x}", (f"a{x}", 0), (f"{x}e", -2), name="native_dropout.default"),
            op(3, f"c{x}", plain=x, name="select.int"),
            backward(f"d{x}", (f"c{x}", 2)),
        )

    assert cause(run("0"), run("1")).place.line == 3


def test_a_batch_in_another_order_has_the_remedy_of_an_order() -> None:
    def run(x: str) -> Stream:
        return stream(op(1, f"a{x}", (f"{x}{x}", -1)), backward(f"b{x}", (f"a{x}", 0)))

    assert cause(run("0"), run("1"), replace(PARTING, reordered=True)).remedy == known_causes.ORDER
    assert cause(run("0"), run("1")).remedy == known_causes.OUTSIDE


def test_what_was_written_before_a_thread_began_does_not_race() -> None:
    def run(x: str) -> Stream:
        return stream(
            op(1, "aa", name="add_.Tensor"),
            op(2, f"b{x}", name="copy_.default", empty=True),
            op(3, f"c{x}", (f"b{x}", 1), thread="task 0 of pool"),
        )

    assert cause(run("0"), run("1")).kind != "race"

    def joined(x: str) -> Stream:
        return stream(
            op(1, f"a{x}", (f"z{x}", -1), thread="Thread-1"), op(2, f"b{x}", (f"a{x}", 0)), backward("cc")
        )

    assert cause(joined("0"), joined("1")).kind == "outside"


def test_a_file_that_already_differed_leads_to_the_line_that_wrote_it() -> None:
    def run(x: str) -> list[Stream]:
        wrote = stream(sources=[Source("written", "train.csv", "", "", at(12))])
        read = Source("content", "what was read from train.csv", x, x, at(3))
        taken = op(4, f"a{x}", (f"{x}{x}", -1), name="lift_fresh.default", sources=1)
        return [wrote, stream(taken, backward(f"b{x}", (f"a{x}", 0)), sources=[read])]

    found = cause(run("0"), run("1"))
    assert found.proven
    assert found.candidates[0].name == "what was read from train.csv, which /code/train.py:12 wrote,"


def test_a_file_that_nothing_recorded_wrote_is_no_cause_where_it_is_read() -> None:
    def run(x: str) -> Stream:
        read = Source("content", f"{READ}train.csv", x, x, at(3))
        taken = op(3, f"a{x}", (f"{x}{x}", -1), name="lift_fresh.default", sources=1)
        return stream(taken, backward(f"b{x}", (f"a{x}", 0)), sources=[read])

    found = cause(run("0"), run("1"))
    assert not found.proven
    assert found.candidates[0].name == "what was read from train.csv, which no recorded process wrote,"
    one, other = (stream(sources=[Source("content", f"{READ}a.csv", x, x, at(3))]) for x in "01")
    assert not cause(one, other).proven


def test_the_time_in_an_archive_that_was_read_again_is_the_cause() -> None:
    def run(x: str) -> Stream:
        sources = [
            Source("written", "data.gz", "", "", at(4)),
            Source("stamp", "time.time in gzip:259", x, x, at(4)),
            Source("content", "what was read from data.gz", x, x, at(6)),
        ]
        taken = op(7, f"a{x}", (f"{x}{x}", -1), name="lift_fresh.default", sources=3)
        return stream(taken, backward(f"b{x}", (f"a{x}", 0)), sources=sources)

    found = cause(run("0"), run("1"))
    assert (found.candidates[0].place.line, found.remedy) == (4, known_causes.SOURCES["stamp"])
