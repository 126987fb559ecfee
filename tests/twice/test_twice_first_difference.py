"""Where two runs part first, from what their processes recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reprobuild.twice.evidence import Evidence
from reprobuild.twice.first_difference import EndDifference, files_apart, first_parting, lines_apart, pairs
from reprobuild.twice.records import Moment, MomentPart, Stream
from reprobuild.twice.text_differences import Texts
from reprobuild.twice.written import WrittenFile


def moment(number: int, *parts: tuple[str, str], kind: str = "step") -> Moment:
    return Moment(
        kind=kind,
        label=f"{kind} {number}",
        number=number,
        parts=tuple(MomentPart(name, digest, b"") for name, digest in parts),
        names={},
        losses=(),
        sample=(),
        wall=0.0,
        spent=0.0,
    )


def stream(*moments: Moment, rank: str = "", process: str = "MainProcess") -> Stream:
    found = Stream(rank=rank, worker="", process=process, argv=("train.py",), values=Path("none"))
    found.moments = list(moments)
    return found


def test_of_all_ranks_the_earliest_moment_counts_and_ranks_are_compared_with_themselves() -> None:
    def run(late: str, early: str) -> list[Stream]:
        return [
            stream(moment(0, ("loss", "a")), moment(1, ("loss", late)), rank="0"),
            stream(moment(0, ("loss", early)), moment(1, ("loss", "c")), rank="1"),
        ]

    found = first_parting(run("b", "x"), run("B", "X"))
    assert found is not None
    assert (found.stream, found.moment, found.part) == ("rank 1", 0, "loss")
    assert first_parting(run("b", "x"), list(reversed(run("b", "x")))) is None


def test_workers_of_a_pool_are_compared_with_those_that_did_the_same() -> None:
    def worker(loss: str) -> Stream:
        return stream(moment(0, ("loss", loss), ("random python", f"of {id(loss)}")))

    one, other = [worker("a"), worker("b")], [worker("b"), worker("a")]
    assert first_parting(one, other) is None
    assert first_parting(one, [worker("a")]) is not None
    parted = first_parting(one, [worker("B"), worker("a")])
    assert parted is not None
    assert parted.part == "loss"
    assert [(a and a.moments, b and b.moments) for a, b in pairs(one, [])] == [
        (each.moments, None) for each in one
    ]


def test_the_first_part_that_differs_is_told_with_what_was_equal() -> None:
    one = stream(moment(0, ("batch", "a"), ("loss", "b"), ("gradients", "c")))
    other = stream(moment(0, ("batch", "a"), ("loss", "B"), ("gradients", "C")))
    found = first_parting([one], [other])
    assert found is not None
    assert (found.part, found.equal) == ("loss", ("batch",))


def test_a_generator_in_another_state_is_no_parting_but_is_remembered() -> None:
    one = stream(moment(0, ("random numpy", "a")), moment(1, ("loss", "b")))
    other = stream(moment(0, ("random numpy", "A")), moment(1, ("loss", "B")))
    assert first_parting([stream(one.moments[0])], [stream(other.moments[0])]) is None
    found = first_parting([one], [other])
    assert found is not None
    assert (found.moment, found.generator, found.generator_label) == (1, "numpy", "step 0")


@pytest.mark.parametrize(
    ("other", "kind", "told"),
    [
        (stream(moment(0, ("loss", "a"))), "length", "run 2 ended there, run 1 went on to step 1"),
        (
            stream(moment(0, ("loss", "a")), moment(1, ("loss", "b"), kind="call")),
            "flow",
            "after step 0, run 1 came to step 1, run 2 to call 1",
        ),
        (
            stream(moment(0, ("loss", "a")), moment(1, ("outputs", "b"))),
            "flow",
            "run 1 went on with loss, run 2 with outputs",
        ),
        (
            stream(moment(0, ("loss", "a")), moment(1, ("loss", "b"), ("loss", "b"))),
            "flow",
            "things done there: 1 in run 1, 2 in run 2",
        ),
        (
            stream(moment(0, ("loss", "a")), moment(1, ("loss", "b")), process="Other"),
            "process",
            "only run 1 has the process train.py",
        ),
    ],
    ids=["shorter", "another call", "another part", "more parts", "another process"],
)
def test_runs_that_do_other_things(other: Stream, kind: str, told: str) -> None:
    found = first_parting([stream(moment(0, ("loss", "a")), moment(1, ("loss", "b")))], [other])
    assert found is not None
    assert (found.kind, found.told) == (kind, told)


def test_processes_of_one_name_are_compared_in_their_order() -> None:
    runs = [stream(moment(0, ("loss", "a"))), stream(moment(0, ("loss", "b")))]
    assert first_parting(runs, runs) is None
    assert first_parting(runs, [runs[0], stream(moment(0, ("loss", "c")))]) is not None
    assert first_parting(runs, [stream(moment(0, ("loss", "c"))), runs[1]]) is not None


def test_the_same_items_in_another_order_are_told_as_such() -> None:
    def batch(*items: str) -> Stream:
        part = MomentPart("batch", "".join(items), b"".join(f"{each:8}".encode() for each in items))
        return stream(replace(moment(0), parts=(part,)))

    moved = first_parting([batch("a", "b", "c")], [batch("a", "c", "b")])
    assert moved is not None
    assert (moved.items, moved.reordered) == ((1, 2), True)
    other = first_parting([batch("a", "b", "c")], [batch("a", "b", "d")])
    assert other is not None
    assert (other.items, other.reordered) == ((2,), False)


NOTHING_KNOWN = Texts(Evidence(), Evidence())


def test_lines_of_several_processes_may_come_in_any_order_but_have_to_be_the_same() -> None:
    def apart(one: list[str], other: list[str], *, many: bool) -> list[EndDifference]:
        return lines_apart(NOTHING_KNOWN, one, other, "standard output", many=many)[0]

    assert apart(["a", "b"], ["b", "a"], many=True) == []
    assert apart(["a", "b"], ["b", "a"], many=False) == [
        EndDifference(
            what="line 1 of standard output", told="run 1 wrote 'a', run 2 'b'", of="standard output"
        )
    ]
    assert apart(["a", "a"], ["a"], many=True) == [
        EndDifference(
            what="line 2 of standard output", told="run 1 wrote 'a', run 2 nothing", of="standard output"
        )
    ]


def wrote(path: str, digest: str, **tensors: str) -> WrittenFile:
    return WrittenFile(path=path, size=len(digest), digest=digest, lines=None, tensors=tensors)


def test_files_are_compared_by_name_and_checkpoints_by_their_tensors() -> None:
    def apart(one: list[WrittenFile], other: list[WrittenFile]) -> list[str]:
        return [f"{each.what}: {each.told}" for each in files_apart(NOTHING_KNOWN, one, other)[0]]

    assert apart([wrote("x", "aa"), wrote("y", "b")], [wrote("y", "b"), wrote("x", "aa")]) == []
    assert apart([wrote("x", "aa")], []) == ["file x: run 1 wrote 1 of that name, run 2 0"]
    assert apart([wrote("x", "aa")], [wrote("x", "ab")]) == ["file x: 2 bytes, not the same in both"]
    assert apart([wrote("x", "aa")], [wrote("x", "abc")]) == ["file x: run 1 wrote 2 bytes, run 2 3"]
    assert apart([wrote("x.pt", "a", w="1", v="1")], [wrote("x.pt", "b", w="1", v="1")]) == []
    assert apart([wrote("x.pt", "a", w="1", v="1")], [wrote("x.pt", "b", w="1", v="2")]) == [
        "file x.pt: 1 of 2 tensors differ, the first is 'v'"
    ]
    assert apart([wrote("x.pt", "a", w="1")], [wrote("x.pt", "b", w="1", v="2")]) == [
        "file x.pt: 1 of 1 tensors differ, the first is 'v'"
    ]


def test_threads_are_beside_threads_and_processes_beside_processes() -> None:
    """Workers of a pool, of which one trains in threads, end in any order."""

    def side(loss: str, *, reverse: bool) -> list[Stream]:
        workers = [stream(moment(0, ("loss", x)), process="worker") for x in ("a", loss)]
        thread = replace(stream(moment(1, ("loss", loss)), process="worker"), is_thread=True)
        return [*workers[::-1], thread] if reverse else [workers[0], thread, workers[1]]

    found = pairs(side("b", reverse=False), side("c", reverse=True))
    assert all(a is not None and b is not None and a.is_thread is b.is_thread for a, b in found)
