"""The first operation that gave another output for equal inputs, or the value that came from outside. Pure
but for reading the values that the trace kept.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from ..host.home import open_regular
from . import known
from .compare import DATA, Parting, pairs
from .distance import largest_ulp
from .known import Remedy
from .masks import masked
from .records import Operation, ProgramLine, Source, Stream

Kind = Literal["operation", "uninitialised", "random", "outside", "flow", "source"]
_SHAPE = re.compile(r"([a-z0-9]+)\[([0-9, ]*)\] \S+")
_WIDTHS = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}
MOST_VALUES = 8 << 20
MOST_CANDIDATES = 8
MOST_HINTS = 3
SHORTLY = 8
"""Values from outside between one that makes a seed and the seeding: seeds of other generators, and so on."""
ATTACHES = ("set_.",)
"""Operations that give a tensor memory which something else has filled."""
ALLOCATES = ("empty", "new_empty", "resize_")
"""Operations that give memory as it is. What else gives outputs that are not known yet is a collective."""
_ORDER = ("seed", "draw", "entropy", "process", "listing", "address", "file", "clock")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value from outside that was another one in each run."""

    kind: str
    name: str
    place: ProgramLine
    values: tuple[str, str]
    at: int
    """How many values its process had taken before."""
    stream: int
    """Which process; -1: it was read from the program's text."""


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
    at: int
    """The number of the operation in its process."""
    received: bool = False
    """Whether it came from another rank, which may have the cause."""
    ulp: int | None = None


def find_cause(one: Sequence[Stream], other: Sequence[Stream], parting: Parting | None) -> Cause | None:
    """Return the first cause that the traces of two runs show, or None where they show none."""
    streams = [(a, b) for a, b in pairs(one, other) if a is not None and b is not None]
    candidates = _candidates(streams)
    of_data = parting is not None and parting.part in DATA
    found: list[tuple[tuple[int, bool, int], Stream, _Finding]] = []
    for a, b in streams:
        if a.worker and not of_data:
            continue  # what it gave was equal
        root = _first(a, b)
        if root is not None:
            # The workers of a loader give what the main process computes with, and ranks what others receive.
            found.append(((0 if a.worker else 1, root.received, root.at), a, root))
    if not found:
        return _by_source(candidates, parting.stream if parting is not None else "") if candidates else None
    _, stream, finding = min(found, key=lambda each: each[0])
    cause = _cause(stream, candidates, finding)
    general = cause.remedy in (known.OUTSIDE, known.RANDOM)
    return replace(cause, remedy=known.ORDER) if general and parting and parting.reordered else cause


def _first(a: Stream, b: Stream) -> _Finding | None:
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
    used: set[int] = set()
    for number, operation in enumerate(a.operations):
        thread = operation.thread
        if thread in parted:
            continue
        other = next(others.get(thread, iter(())), None)
        if other is None:
            told = f"run 1 went on with {operation.name} at {operation.place}, run 2 ended before"
            roots[number] = _Finding("flow", known.FLOW, told, number)
            parted.add(thread)
            continue
        found = _differs(number, operation, other, a, last.get(thread))
        last[thread] = operation
        if found is None:
            continue
        if found.kind == "flow":
            parted.add(thread)
        pairs_of_inputs = zip(operation.inputs, other.inputs, strict=False)
        inherited = frozenset[int]().union(
            *(made_by.get(x[1], ()) for x, y in pairs_of_inputs if x[0] != y[0])
        )
        used |= inherited
        if not inherited:
            ulp = ulp_apart(operation, other, (a, b)) if found.kind == "operation" else None
            roots[number] = replace(found, ulp=ulp)
        made_by[number] = inherited or frozenset((number,))
        if operation.backward:
            return _origin(roots[min(made_by[number])], roots, used, a)
    first = next(iter(roots.values()), None)
    return None if first is None else _origin(first, roots, used, a)


def _origin(finding: _Finding, roots: Mapping[int, _Finding], used: set[int], stream: Stream) -> _Finding:
    """Return where a number came from that left torch before, as indices do, or the finding itself."""
    if finding.kind not in ("outside", "flow"):
        return finding
    thread = stream.operations[finding.at].thread
    for number, each in roots.items():
        if number >= finding.at:
            break
        left = number not in used and each.kind in ("random", "operation", "uninitialised")
        if left and stream.operations[number].thread == thread:
            return each
    return finding


def _threads(stream: Stream) -> list[str]:
    return list(dict.fromkeys(operation.thread for operation in stream.operations))


def _differs(
    number: int, a: Operation, b: Operation, stream: Stream, before: Operation | None
) -> _Finding | None:
    """Return what differs between the same operation of two runs, all before being equal."""
    if (a.name, a.shapes, a.place, len(a.inputs)) != (b.name, b.shapes, b.place, len(b.inputs)):
        told = f"run 1 went on with {a.name} at {a.place}, run 2 with {b.name} at {b.place}"
        if before is not None:
            told += f"; the last common point is {before.name} at {before.place}"
        return _Finding("flow", known.FLOW, told, number)
    if a.outputs == b.outputs and not a.empty:
        return None  # whatever went in, nothing came of it
    unequal = [x for x, y in zip(a.inputs, b.inputs, strict=True) if x[0] != y[0]]
    if unequal:
        return _of_inputs(number, a, unequal, stream)
    if a.plain != b.plain:
        return _Finding("outside", known.OUTSIDE, "a number that it was given differs", number)
    if a.name.startswith(ATTACHES):
        told = "its memory was filled by another process, or from a file"
        return _Finding("outside", known.OUTSIDE, told, number)
    told = "its inputs were equal and its output was not"
    return None if a.empty else _Finding("operation", known.of_operation(a.name), told, number)


def _of_inputs(
    number: int, operation: Operation, unequal: Sequence[tuple[str, int]], stream: Stream
) -> _Finding:
    if any(made == -2 for _, made in unequal):
        return _drawn(number, operation, stream)
    made = unequal[0][1]
    maker = stream.operations[made] if 0 <= made < len(stream.operations) else None
    if maker is not None and maker.empty:
        return _unwritten(made, maker, operation)
    told = "an input differs that no recorded operation had made different"
    return _Finding("outside", known.THREADS if operation.thread else known.OUTSIDE, told, number)


def _drawn(number: int, operation: Operation, stream: Stream) -> _Finding:
    told = "its random generator was in another state in each run"
    for other in stream.operations:
        if other.thread != operation.thread and any(made == -2 for _, made in other.inputs):
            told += f", and a thread draws too: {other.name} at {other.place}"
            return _Finding("random", known.SHARED, told, number)
    return _Finding("random", known.RANDOM, told, number)


def _unwritten(made: int, maker: Operation, reader: Operation) -> _Finding:
    """Return the finding for an operation that read what another gave, or what other ranks had sent."""
    if not maker.name.startswith(ALLOCATES):
        told = f"what came from other ranks differs; {reader.name} at {reader.place} is the first to read it"
        # Any source: this rank itself takes what comes first.
        return _Finding(
            "operation", known.of_operation(maker.name), told, made, "any_source" not in maker.name
        )
    told = f"{reader.name} at {reader.place} read the memory that it gave, before all of it was written"
    return _Finding("uninitialised", known.UNINITIALISED, told, made)


def _cause(stream: Stream, candidates: Sequence[Candidate], finding: _Finding) -> Cause:
    operation = stream.operations[finding.at]
    computed = finding.kind in ("operation", "uninitialised")
    near = [] if computed else _nearest(_before(candidates, stream, operation), operation.place, finding.kind)
    hints = [] if computed else _hints(stream, operation.place, drawn=finding.kind == "random")
    if finding.kind == "random":  # its state comes from the seed, and from no clock
        # A generator of the program's own is seeded unseen; the line says so.
        own = [each for each in near if each.kind != "seed" and "seed" in each.place.text.lower()]
        near = [each for each in near if each.kind == "seed"] or own
        near = [*(origin for each in near[:1] for origin in _seeded_by(each, candidates)), *near]
    near += hints[:MOST_HINTS]
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


def _before(candidates: Sequence[Candidate], stream: Stream, operation: Operation) -> list[Candidate]:
    """Return the candidates that may have been there for an operation: what came after it is none."""
    here = id(stream)
    return [each for each in candidates if each.stream != here or each.at < operation.sources]


def _seeded_by(seed: Candidate, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the value that a generator was seeded with, where it came from outside shortly before."""
    earlier = [
        each for each in candidates if each.stream == seed.stream and each.at < seed.at and not _is_seed(each)
    ]
    latest = max(earlier, key=lambda each: each.at, default=None)
    if latest is None or latest.kind not in ("clock", "process", "entropy", "draw", "address"):
        return []
    same = all(value in shown for value, shown in zip(latest.values, seed.values, strict=True))
    return [latest] if same or seed.at - latest.at <= SHORTLY else []


def _is_seed(candidate: Candidate) -> bool:
    return candidate.kind == "seed" or candidate.name.endswith((".seed", ".manual_seed", ".default_rng"))


def _hints(stream: Stream, place: ProgramLine, *, drawn: bool) -> list[Candidate]:
    found = [
        Candidate("hint", what, at, ("", ""), 0, -1)
        for what, at in stream.hints
        if not drawn or what == known.UNSEEDED_HINT
    ]
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
    def rank(candidate: Candidate) -> tuple[int, int, int]:
        there, here = candidate.place, place
        if kind == "random" and candidate.kind == "seed":
            near = 0
        elif here is None or there.file != here.file:
            near = 3
        elif there.line == here.line:
            near = 1
        else:
            near = 2 if there.function == here.function else 3
        return near, _ORDER.index(candidate.kind) if candidate.kind in _ORDER else len(_ORDER), -candidate.at

    ranked = sorted(candidates, key=rank)
    # Where a generator was seeded with another value, all its draws differ.
    for seed in [each for each in ranked if _is_seed(each)]:
        module = seed.name.rpartition(".")[0]
        if ranked[0].kind in ("draw", "seed") and ranked[0].name.rpartition(".")[0] == module:
            origin = _seeded_by(seed, candidates)
            ranked = [*origin, seed, *(each for each in ranked if each is not seed and each not in origin)]
    return ranked


def _candidates(streams: Sequence[tuple[Stream, Stream]]) -> list[Candidate]:
    found: dict[tuple[str, ProgramLine], Candidate] = {}
    for a, b in streams:
        for candidate in _out_of_turn(a, b):
            found.setdefault((candidate.name, candidate.place), candidate)
        sides: list[Mapping[tuple[str, ProgramLine], list[tuple[int, Source]]]] = []
        for stream in (a, b):
            calls: dict[tuple[str, ProgramLine], list[tuple[int, Source]]] = defaultdict(list)
            for at, source in enumerate(stream.sources):
                calls[source.name, source.place].append((at, source))
            sides.append(calls)
        for key, first in sides[0].items():
            for (at, x), (_, y) in zip(first, sides[1].get(key, []), strict=False):
                # The name of a folder may have a time in it.
                if x.value != y.value and (x.kind != "file" or masked(x.shown) != masked(y.shown)):
                    found.setdefault(key, Candidate(x.kind, x.name, x.place, (x.shown, y.shown), at, id(a)))
                    break
    return list(found.values())


def _out_of_turn(a: Stream, b: Stream) -> list[Candidate]:
    """Return the first draw from each random generator of Python's or NumPy's that only one run made."""
    found = []
    for module in ("random", "numpy.random"):
        draws = [
            [
                (at, s)
                for at, s in enumerate(stream.sources)
                if s.kind == "draw" and s.name.rpartition(".")[0] == module
            ]
            for stream in (a, b)
        ]
        for x, y in zip_longest(*draws):
            if x is None or y is None or (x[1].name, x[1].place) != (y[1].name, y[1].place):
                at, extra = x or y
                there = tuple(f"a draw at {each[1].place}" if each else "no draw" for each in (x, y))
                values = (there[0], there[1])
                found.append(Candidate("draw", extra.name, extra.place, values, at, id(a)))
                break
    return found


def ulp_apart(a: Operation, b: Operation, streams: tuple[Stream, Stream]) -> int | None:
    """Return the largest distance of the outputs of two operations, each of its stream; None where no values
    were kept."""
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
