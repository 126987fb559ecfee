"""The first operation that gave another output for equal inputs, or the value that came from outside. Pure
but for reading the values that the trace kept.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    found: list[tuple[tuple[int, int], Cause]] = []
    for a, b in streams:
        # The workers of a loader give what the main process computes with.
        turn = 0 if a.worker else 1
        for thread in dict.fromkeys(operation.thread for operation in a.operations):
            operations = [[o for o in s.operations if o.thread == thread] for s in (a, b)]
            cause = _first(operations[0], operations[1], (a, b), candidates)
            if cause is not None:
                found.append(((turn, cause[0]), cause[1]))
    if found:
        return min(found, key=lambda each: each[0])[1]
    return _by_source(candidates, parting.stream if parting is not None else "") if candidates else None


def _first(
    one: Sequence[Operation],
    other: Sequence[Operation],
    streams: tuple[Stream, Stream],
    candidates: Sequence[Candidate],
) -> tuple[int, Cause] | None:
    for number, (a, b) in enumerate(zip(one, other, strict=False)):
        found = _differs(a, b, streams[0], one[number - 1] if number else None)
        if found is not None:
            kind, remedy, told = found
            ulp = _ulp(a, b, streams) if kind == "operation" else None
            return number, _cause(a, streams[0], candidates, _Finding(kind, remedy, told, ulp))
    if len(one) != len(other) and min(len(one), len(other)):
        shorter, longer = sorted((one, other), key=len)
        last, at = shorter[-1], longer[len(shorter)]
        told = (
            f"one run ended after {last.name} at {last.place}, the other went on with {at.name} at {at.place}"
        )
        return len(shorter), _cause(at, streams[0], candidates, _Finding("flow", known.FLOW, told))
    return None


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
        return "outside", known.OUTSIDE, "an input differs that no recorded operation had made different"
    if a.plain != b.plain:
        return "outside", known.OUTSIDE, "a number that it was given differs"
    told = "its inputs were equal and its output was not"
    return ("operation", known.of_operation(a.name), told) if a.outputs != b.outputs else None


def _cause(operation: Operation, stream: Stream, candidates: Sequence[Candidate], finding: _Finding) -> Cause:
    computed = finding.kind in ("operation", "uninitialised")
    near = [] if computed else _nearest(candidates, operation.place, finding.kind)
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

    return sorted(candidates, key=rank)


def _candidates(streams: Sequence[tuple[Stream, Stream]]) -> list[Candidate]:
    found: dict[tuple[str, ProgramLine], Candidate] = {}
    for a, b in streams:
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
