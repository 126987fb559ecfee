"""The first operation that gave another output for equal inputs, or the value that came from outside. Pure
but for reading the values that the trace kept.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from ..host.home import open_regular
from . import known
from .compare import Parting, pairs
from .distance import largest_ulp
from .known import Remedy
from .records import Operation, ProgramLine, Source, Stream

Kind = Literal["operation", "uninitialised", "random", "outside", "flow", "source"]
_SHAPE = re.compile(r"([a-z0-9]+)\[([0-9, ]*)\] \S+")
_WIDTHS = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}
MOST_VALUES = 8 << 20
MOST_CANDIDATES = 8
MOST_HINTS = 3
_ORDER = ("seed", "draw", "entropy", "process", "listing", "address", "file", "clock")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value from outside that was another one in each run."""

    kind: str
    name: str
    place: ProgramLine
    values: tuple[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Cause:
    """What the trace found first."""

    kind: Kind
    operation: str
    place: ProgramLine
    module: str
    stream: str
    backward: bool
    thread: str
    shapes: tuple[str, ...]
    ulp: int | None
    deterministic: bool
    remedy: Remedy
    candidates: tuple[Candidate, ...]
    """Values from outside that differed before; one that stands on the same line comes first."""
    told: str


@dataclass(frozen=True, slots=True)
class _Finding:
    """What is wrong with the first operation that differs."""

    kind: Kind
    remedy: Remedy
    told: str
    ulp: int | None = None


def find_cause(one: Sequence[Stream], other: Sequence[Stream], parting: Parting | None) -> Cause | None:
    """Return the first cause that the traces of two runs show, or None where they show none."""
    streams = [(a, b) for a, b in pairs(one, other) if a is not None and b is not None]
    candidates = _candidates(streams)
    of_data = parting is not None and parting.part in ("batch", "inputs")
    found: list[tuple[tuple[int, int], Cause]] = []
    for a, b in streams:
        if a.worker and not of_data:
            continue  # what it gave was equal
        root = _first(a, b)
        if root is not None:
            # The workers of a loader give what the main process computes with.
            turn = 0 if a.worker else 1
            found.append(((turn, root[0]), _cause(a.operations[root[0]], a, candidates, root[1])))
    if found:
        return min(found, key=lambda each: each[0])[1]
    return _by_source(candidates, parting.stream if parting is not None else "") if candidates else None


def _first(a: Stream, b: Stream) -> tuple[int, _Finding] | None:
    """Return the first operation that differs by itself and reaches a backward pass, or else the first.

    What differs because an earlier operation did is no cause; nor is a value that nothing learns from, such
    as a time that is printed.
    """
    others: dict[str, Iterator[Operation]] = {
        thread: iter([o for o in b.operations if o.thread == thread]) for thread in _threads(b)
    }
    last: dict[str, Operation] = {}
    parted: set[str] = set()
    roots: dict[int, _Finding] = {}
    made_by: dict[int, frozenset[int]] = {}
    for number, operation in enumerate(a.operations):
        thread = operation.thread
        if thread in parted:
            continue
        other = next(others.get(thread, iter(())), None)
        if other is None:
            told = f"run 1 went on with {operation.name} at {operation.place}, run 2 ended before"
            roots[number] = _Finding("flow", known.FLOW, told)
            parted.add(thread)
            continue
        found = _differs(operation, other, a, last.get(thread))
        last[thread] = operation
        if found is None:
            continue
        if found[0] == "flow":
            parted.add(thread)
        pairs_of_inputs = zip(operation.inputs, other.inputs, strict=False)
        inherited = frozenset[int]().union(
            *(made_by.get(x[1], ()) for x, y in pairs_of_inputs if x[0] != y[0])
        )
        if not inherited:
            ulp = _ulp(operation, other, (a, b)) if found[0] == "operation" else None
            roots[number] = _Finding(*found, ulp)
        made_by[number] = inherited or frozenset((number,))
        if operation.backward:
            first = min(made_by[number])
            return first, roots[first]
    return next(iter(roots.items()), None)


def _threads(stream: Stream) -> list[str]:
    return list(dict.fromkeys(operation.thread for operation in stream.operations))


def _differs(
    a: Operation, b: Operation, stream: Stream, before: Operation | None
) -> tuple[Kind, Remedy, str] | None:
    """Return what differs between the same operation of two runs, all before being equal."""
    if (a.name, a.shapes, a.place, len(a.inputs)) != (b.name, b.shapes, b.place, len(b.inputs)):
        told = f"run 1 went on with {a.name} at {a.place}, run 2 with {b.name} at {b.place}"
        if before is not None:
            told += f"; the last common point is {before.name} at {before.place}"
        return "flow", known.FLOW, told
    unequal = [x for x, y in zip(a.inputs, b.inputs, strict=True) if x[0] != y[0]]
    if any(made == -2 for _, made in unequal):
        return "random", known.RANDOM, "its random generator was in another state in each run"
    if unequal:
        made = unequal[0][1]
        maker = stream.operations[made] if 0 <= made < len(stream.operations) else None
        if maker is not None and maker.empty:
            told = (
                f"it read memory that {maker.name} gave at {maker.place}, before anything was written there"
            )
            return "uninitialised", known.UNINITIALISED, told
        told = "an input differs that no recorded operation had made different"
        return "outside", known.THREADS if a.thread else known.OUTSIDE, told
    if a.plain != b.plain:
        return "outside", known.OUTSIDE, "a number that it was given differs"
    told = "its inputs were equal and its output was not"
    return ("operation", known.of_operation(a.name), told) if a.outputs != b.outputs else None


def _cause(operation: Operation, stream: Stream, candidates: Sequence[Candidate], finding: _Finding) -> Cause:
    computed = finding.kind in ("operation", "uninitialised")
    near = [] if computed else _nearest(candidates, operation.place, finding.kind)
    if finding.kind in ("outside", "flow"):
        near += _hints(stream, operation.place)[:MOST_HINTS]
    if finding.kind == "random":  # its state comes from the seed, and from no clock
        near = [each for each in near if each.kind == "seed"]
    remedy = finding.remedy
    if near and (near[0].place == operation.place or len(near) == 1 or finding.kind == "random"):
        remedy = known.SOURCES.get(near[0].kind, remedy)
    return Cause(
        kind=finding.kind,
        operation=operation.name,
        place=operation.place,
        module=operation.module,
        stream=stream.label,
        backward=operation.backward,
        thread=operation.thread,
        shapes=operation.shapes,
        ulp=finding.ulp,
        deterministic=operation.deterministic,
        remedy=remedy,
        candidates=tuple(near[:MOST_CANDIDATES]),
        told=finding.told,
    )


def _hints(stream: Stream, place: ProgramLine) -> list[Candidate]:
    found = [Candidate("hint", what, at, ("", "")) for what, at in stream.hints]
    found.sort(key=lambda hint: (hint.place.file != place.file, abs(hint.place.line - place.line)))
    return found


def _by_source(candidates: Sequence[Candidate], stream: str) -> Cause:
    """Return a cause without an operation: what came from outside is all that differed."""
    best = _nearest(candidates, None, "source")
    return Cause(
        kind="source",
        operation="",
        place=best[0].place,
        module="",
        stream=stream,
        backward=False,
        thread="",
        shapes=(),
        ulp=None,
        deterministic=True,
        remedy=known.SOURCES.get(best[0].kind, known.OUTSIDE),
        candidates=tuple(best[:MOST_CANDIDATES]),
        told="no operation of torch differed" + ("" if len(best) == 1 else "; one of these may be the cause"),
    )


def _nearest(candidates: Sequence[Candidate], place: ProgramLine | None, kind: str) -> list[Candidate]:
    def rank(candidate: Candidate) -> tuple[int, int]:
        there, here = candidate.place, place
        if kind == "random" and candidate.kind == "seed":
            near = 0
        elif here is None or there.file != here.file:
            near = 4
        elif there.line == here.line:
            near = 1
        else:
            near = 2 if there.function == here.function else 3
        return near, _ORDER.index(candidate.kind) if candidate.kind in _ORDER else len(_ORDER)

    ranked = sorted(candidates, key=rank)
    # Where a generator was seeded with another value, all its draws differ.
    for seed in [each for each in ranked if each.name.endswith((".seed", ".manual_seed"))]:
        module = seed.name.rpartition(".")[0]
        if ranked[0].kind == "draw" and ranked[0].name.rpartition(".")[0] == module:
            ranked = [seed, *(each for each in ranked if each is not seed)]
    return ranked


def _candidates(streams: Sequence[tuple[Stream, Stream]]) -> list[Candidate]:
    found: dict[tuple[str, ProgramLine], Candidate] = {}
    for a, b in streams:
        for candidate in _out_of_turn(a, b):
            found.setdefault((candidate.name, candidate.place), candidate)
        sides: list[Mapping[tuple[str, ProgramLine], list[Source]]] = []
        for stream in (a, b):
            calls: dict[tuple[str, ProgramLine], list[Source]] = defaultdict(list)
            for source in stream.sources:
                calls[source.name, source.place].append(source)
            sides.append(calls)
        for key, first in sides[0].items():
            second = sides[1].get(key, [])
            for x, y in zip(first, second, strict=False):
                if x.value != y.value:
                    found.setdefault(key, Candidate(x.kind, x.name, x.place, (x.shown, y.shown)))
                    break
    return list(found.values())


def _out_of_turn(a: Stream, b: Stream) -> list[Candidate]:
    """Return the first draw from each random generator of Python's or NumPy's that only one run made."""
    found = []
    for module in ("random", "numpy.random"):
        draws = [
            [s for s in stream.sources if s.kind == "draw" and s.name.rpartition(".")[0] == module]
            for stream in (a, b)
        ]
        for x, y in zip_longest(*draws):
            if x is None or y is None or (x.name, x.place) != (y.name, y.place):
                extra = x or y
                there = tuple(f"a draw at {each.place}" if each else "no draw" for each in (x, y))
                found.append(Candidate("draw", extra.name, extra.place, (there[0], there[1])))
                break
    return found


def _ulp(a: Operation, b: Operation, streams: tuple[Stream, Stream]) -> int | None:
    distances = []
    for at, (x, y) in enumerate(zip(a.outputs, b.outputs, strict=False)):
        if x == y or at >= min(len(a.kept), len(b.kept)) or min(a.kept[at], b.kept[at]) < 0:
            continue
        shape = _SHAPE.fullmatch(a.shapes[at])
        if shape is None or shape[1] not in _WIDTHS:
            continue
        sizes = [int(size) for size in shape[2].split(",") if size.strip()]
        size = math.prod(sizes) * _WIDTHS[shape[1]]
        if not 0 < size <= MOST_VALUES:
            continue
        one, other = (
            _values(streams[0].values, a.kept[at], size),
            _values(streams[1].values, b.kept[at], size),
        )
        found = largest_ulp(one, other, shape[1])
        if found is not None:
            distances.append(found)
    return max(distances, default=None)


def _values(path: Path, at: int, size: int) -> bytes:
    try:
        if path.is_symlink():
            return b""
        with open_regular(path) as file:
            file.seek(at)
            return file.read(size)
    except OSError:
        return b""
