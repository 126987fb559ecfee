"""Operations of two images side by side: what moved, by itself or by its inputs, and what never repeats."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from reprobuild.twice.drift import drift
from reprobuild.twice.records import Operation, ProgramLine, Stream


def operation(name: str, given: str, gave: str) -> Operation:
    return Operation(
        name=name,
        inputs=((given, -1),),
        plain="",
        outputs=(gave,),
        kept=(-1,),
        shapes=("float32[2] cpu",),
        place=ProgramLine("train.py", 3, "main", ""),
        module="",
        backward=False,
        deterministic=True,
        thread="",
        empty=False,
        moment=0,
        sources=0,
    )


def run(*operations: Operation) -> list[Stream]:
    stream = Stream(rank="", worker="", process="MainProcess", argv=("train.py",), values=Path())
    stream.operations = list(operations)
    return [stream]


def test_what_moved_itself_and_what_got_other_inputs() -> None:
    old = run(operation("mm", "a", "b"), operation("relu", "b", "c"), operation("neg", "x", "y"))
    new = run(operation("mm", "a", "B"), operation("relu", "B", "C"), operation("neg", "x", "y"))
    found = drift(old, new)
    assert [(each.operation, each.by_itself) for each in found.moved] == [("mm", 1), ("relu", 0)]
    late = drift(
        run(operation("relu", "b", "c"), operation("mm", "a", "b")),
        run(operation("relu", "B", "C"), operation("mm", "a", "B")),
    )
    assert [each.operation for each in late.moved] == ["mm", "relu"]
    assert (found.compared, found.only, found.cut) == (3, (0, 0), False)


def test_what_does_not_repeat_in_one_image_has_not_moved() -> None:
    old, again = run(operation("rand", "a", "b")), run(operation("rand", "a", "c"))
    found = drift(old, run(operation("rand", "a", "d")), without=drift(old, again).moved)
    assert (found.moved, found.restless) == ((), 1)


def test_memory_as_it_is_has_not_moved_and_other_numbers_are_other_inputs() -> None:
    empty = [replace(operation("empty", "a", each), empty=True) for each in "bc"]
    assert drift(run(empty[0]), run(empty[1])).moved == ()
    [moved] = drift(
        run(operation("mul", "a", "b")), run(replace(operation("mul", "a", "c"), plain="x"))
    ).moved
    assert (moved.times, moved.by_itself) == (1, 0)


def test_more_operations_than_are_traced_are_told() -> None:
    old, new = run(operation("mm", "a", "b")), run(operation("mm", "a", "b"))
    new[0].cut = True
    assert drift(old, new).cut


def test_operations_that_one_alone_did_are_counted() -> None:
    old = run(operation("mm", "a", "b"), operation("mm", "a", "b"))
    new = run(operation("mm", "a", "b"), operation("addmm", "a", "b"))
    assert drift(old, new).only == (1, 1)


def test_other_threads_and_versions_are_told() -> None:
    old, new = run(operation("mm", "a", "b")), run(operation("mm", "a", "b"))
    old[0].torch, new[0].torch = {"threads": "1", "torch": "2.13.0"}, {"threads": "2", "torch": "2.13.0"}
    assert drift(old, new).kinds == ("threads 1, now 2",)
