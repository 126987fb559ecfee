"""Find the first operation with equal inputs and another output, or the external value before it. Pure
but for `kept_values`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from . import known_causes, known_operations
from .external_values import (
    Candidate,
    differing,
    hints_near,
    is_drawn_name,
    is_from_elsewhere,
    is_written,
    names_listed,
    nearest,
    of_hint,
    seeded_by,
    taken_before,
    taken_inside,
)
from .first_difference import DATA, Parting, pairs
from .internal import internal_outputs, without_internal
from .kept_values import ulp_apart
from .known_causes import Remedy
from .late_seeds import late_seeds
from .races import Input, is_handed, is_torn, races
from .records import Operation, ProgramLine, Stream

Kind = Literal["operation", "uninitialised", "random", "race", "outside", "flow", "source"]
COMPUTED = ("operation", "uninitialised", "race")
"""Kinds of what an operation did by itself."""
MOST_CANDIDATES = 40
MOST_HINTS = 3
ATTACHES = ("set_.",)
"""Operations that give a tensor memory which something else has filled."""
LEAVES = ("_local_scalar_dense.",)
"""Operations that give a number to Python, as ``item`` does."""
ALLOCATES = ("empty", "new_empty", "resize_")
"""Operations that give memory as it is. What else gives outputs that are not known yet is a collective."""


@dataclass(frozen=True, slots=True)
class Trial:
    """An experiment: some runs with one suspect pinned, and whether these repeat."""

    what: str
    repeats: bool
    left: tuple[str, ...] = ()
    """What differs still, where the first difference of the runs as they are is gone."""
    equal: tuple[int, int] = (0, 0)
    """How many of how many runs are equal, where others are not; as they are, no two are."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cause:
    """The first finding of the trace."""

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
    """External values that differed earlier; those on the same line come first."""
    told: str
    proven: bool = True
    """Whether the first of these is linked to what differs; else each is only something that differed."""
    trials: tuple[Trial, ...] = ()
    """The experiments that were made."""
    made_at: ProgramLine | None = None
    """Of a draw in a constructor, the line that made the object first."""

    @property
    def came_in(self) -> bool:
        """Whether a candidate is proven to have given the value: the operation is only where it went."""
        return self.proven and bool(self.candidates) and self.kind not in COMPUTED

    @property
    def line(self) -> ProgramLine:
        """The line to name first."""
        return self.candidates[0].place if self.came_in else self.place


@dataclass(frozen=True, slots=True)
class _Finding:
    """What is wrong with the first operation that differs."""

    kind: Kind
    remedy: Remedy
    told: str
    at: int
    """Number of the operation in its process."""
    received: bool = False
    """Whether it came from another rank, which may have the cause."""
    ulp: int | None = None
    sure: bool = True
    """Whether it is more than a candidate."""


def find_cause(one: Sequence[Stream], other: Sequence[Stream], parting: Parting | None) -> Cause | None:
    """Return the first cause in the traces of two runs; None if there is none."""
    streams = [_compared(a, b) for a, b in pairs(one, other) if a is not None and b is not None]
    candidates = differing(streams)
    of_data = parting is not None and parting.part in DATA
    found: list[tuple[tuple[int, bool, bool, bool, int], Stream, _Finding]] = []
    for a, b in streams:
        if a.worker and not of_data:
            continue  # what it gave was equal
        root = _first(a, b)
        if root is not None:
            # The workers of a loader give what the main process computes with, and ranks what others receive.
            # A value from outside may be another process's; where it parted first it is not that one's echo.
            elsewhere = parting is not None and a.label != parting.stream
            came = root.kind == "outside"
            found.append(((0 if a.worker else 1, root.received, came, elsewhere, root.at), a, root))
    if not found:
        # What an operation of torch would be near to is nowhere: the text may say more.
        hints = [*late_seeds(streams, candidates), *_hints_of(one)]
        label = parting.stream if parting is not None else ""
        return _by_source(candidates, label, hints) if candidates or hints else None
    _, stream, finding = min(found, key=lambda each: each[0])
    if finding.remedy is known_operations.MOVED:  # no cause by itself, but a seed that differs is
        seeds = [each for each in candidates if each.kind == "seed"]
        if seeds:
            origins = [origin for seed in seeds for origin in seeded_by(seed, candidates)]
            told = f"{stream.operations[finding.at].name} gave what another rank drew"
            return replace(_by_source([*seeds, *origins], stream.label), told=told)
    cause = _cause(stream, candidates, finding, [each for each, _ in streams])
    general = cause.remedy in (known_causes.OUTSIDE, known_causes.RANDOM)
    return replace(cause, remedy=known_causes.ORDER) if general and parting and parting.reordered else cause


def _compared(a: Stream, b: Stream) -> tuple[Stream, Stream]:
    internal = internal_outputs((a.operations, b.operations))
    one, other = (replace(s, operations=without_internal(s.operations, internal)) for s in (a, b))
    return one, other


def _first(a: Stream, b: Stream) -> _Finding | None:
    """Return the first operation that differs by itself and reaches a backward pass, or else the first.

    What differs because an earlier operation did is no cause; nor is a value that nothing learns from, such
    as a time that is printed.
    """
    others: dict[str, Iterator[tuple[int, Operation]]] = {
        thread: iter([(at, o) for at, o in enumerate(b.operations) if o.thread == thread])
        for thread in _threads(b)
    }
    last: dict[str, Operation] = {}
    parted: dict[str, int] = {}
    roots: dict[int, _Finding] = {}
    made_by: dict[int, frozenset[int]] = {}
    used, left = set[int](), set[int]()
    for number, operation in enumerate(a.operations):
        thread = operation.thread
        if thread in parted:
            made_by[number] = frozenset((parted[thread],))
            continue
        there, other = next(others.get(thread, iter(())), (-1, None))
        if other is None:
            told = f"run 1 went on with {operation.name} at {operation.place}, run 2 ended before"
            roots[number] = _Finding("flow", known_causes.FLOW, told, number)
            parted[thread] = number
            continue
        found = _differs((number, there), operation, other, (a, b), last.get(thread))
        last[thread] = operation
        if found is None:
            continue
        if found.kind == "flow":
            parted[thread] = number
        pairs_of_inputs = zip(operation.inputs, other.inputs, strict=False)
        inherited = frozenset[int]().union(
            *(made_by.get(x[1], ()) for x, y in pairs_of_inputs if x[0] != y[0])
        )
        if operation.name.startswith(LEAVES):
            left |= inherited
        else:
            used |= inherited
        if not inherited:
            ulp = ulp_apart(operation, other, (a, b)) if found.kind == "operation" else None
            roots[number] = replace(found, ulp=ulp)
        made_by[number] = inherited or frozenset((number,))
        if operation.backward:
            return _origin(roots[min(made_by[number])], roots, (used, left), a)
    first = next(iter(roots.values()), None)
    reached = made_by[max(made_by)] if made_by else frozenset[int]()
    later = roots.get(min(reached, default=-1))
    if first is not None and later is not None and first.kind == later.kind == "random":
        # Initial weights do not matter where others are loaded over them.
        first = first if first.at in reached else later
    return None if first is None else _origin(first, roots, (used, left), a)


def _origin(
    finding: _Finding, roots: Mapping[int, _Finding], came_of: tuple[set[int], set[int]], stream: Stream
) -> _Finding:
    """Return where a number came from that left torch before, as indices do, or the finding itself.

    ``came_of``: what an operation of torch used, and what became a number of Python. One that became none may
    have left as an array, or was overwritten, as initial weights are.
    """
    used, left = came_of
    if finding.kind not in ("outside", "flow"):
        return finding
    thread = stream.operations[finding.at].thread
    gone = [
        number
        for number, each in roots.items()
        if number < finding.at and number not in used
        if each.kind in ("random", "operation", "uninitialised")
        if stream.operations[number].thread == thread
    ]
    first = next((number for number in gone if number in left), next(iter(gone), None))
    return finding if first is None else roots[first]


def _threads(stream: Stream) -> list[str]:
    return list(dict.fromkeys(operation.thread for operation in stream.operations))


def _differs(
    numbers: tuple[int, int],
    a: Operation,
    b: Operation,
    streams: tuple[Stream, Stream],
    before: Operation | None,
) -> _Finding | None:
    """Return what differs between the same operation of two runs, all before being equal."""
    number = numbers[0]
    if (a.name, a.shapes, a.place, len(a.inputs)) != (b.name, b.shapes, b.place, len(b.inputs)):
        told = f"run 1 went on with {a.name} at {a.place}, run 2 with {b.name} at {b.place}"
        if before is not None:
            told += f"; the last common point is {before.name} at {before.place}"
        return _Finding("flow", known_causes.THREADS if a.thread else known_causes.FLOW, told, number)
    if a.outputs == b.outputs and not a.empty:
        return None  # whatever went in, nothing came of it
    unequal = [each for each in zip(a.inputs, b.inputs, strict=True) if each[0][0] != each[1][0]]
    if unequal:
        return _of_inputs(numbers, a, unequal, streams)
    if a.plain != b.plain:
        return _Finding("outside", known_causes.OUTSIDE, "a number that it was given differs", number)
    if a.name.startswith(ATTACHES):
        told = "its memory was filled by another process, or from a file"
        return _Finding("outside", known_causes.OUTSIDE, told, number)
    told = "its inputs were equal and its output was not"
    return None if a.empty else _Finding("operation", known_operations.of_operation(a.name), told, number)


def _of_inputs(
    numbers: tuple[int, int],
    operation: Operation,
    unequal: Sequence[tuple[Input, Input]],
    streams: tuple[Stream, Stream],
) -> _Finding | None:
    number, stream = numbers[0], streams[0]
    if any(x[1] == -2 for x, _ in unequal):
        return _drawn(number, operation, stream)
    made = unequal[0][0][1]
    maker = stream.operations[made] if 0 <= made < len(stream.operations) else None
    if maker is not None and maker.empty:
        if operation.empty:
            return None  # a view, which reads nothing
        while (viewed := _viewed(maker, stream)) >= 0:
            made, maker = viewed, stream.operations[viewed]
        return _unwritten(made, maker, operation)
    racing = [each for each in zip(unequal[0], numbers, streams, strict=True) if races(*each)]
    if racing:
        sure = [each for each in racing if is_torn(*each)]
        read, _, side = (sure or racing)[0]
        reads = "read" if sure else "may have read"
        if not operation.thread and maker is not None and maker.thread:
            told = f"{operation.name} at {operation.place} {reads} what it writes in another thread meanwhile"
            return _Finding("race", known_causes.THREADS, told, made, sure=bool(sure))
        writer = side.operations[read[1]]
        told = f"it {reads} what {writer.name} at {writer.place} writes in another thread meanwhile"
        return _Finding("race", known_causes.THREADS, told, number, sure=bool(sure))
    told = "an input differs that no recorded operation had made different"
    if maker is not None and maker.thread != operation.thread and is_handed(unequal[0][0], operation):
        told = f"what another thread handed over differs: {maker.name} at {maker.place} made it"
    return _Finding("outside", known_causes.OUTSIDE, told, number)


def _viewed(maker: Operation, stream: Stream) -> int:
    """Return the operation that gave the memory of which ``maker`` gives a view; -1: it gives its own."""
    if maker.name.startswith(ALLOCATES) or len(maker.inputs) != 1:
        return -1
    made = maker.inputs[0][1]
    return made if 0 <= made < len(stream.operations) and stream.operations[made].empty else -1


def _drawn(number: int, operation: Operation, stream: Stream) -> _Finding:
    told = "its random generator was in another state in each run"
    for other in stream.operations:
        if other.thread != operation.thread and any(made == -2 for _, made in other.inputs):
            told += f", and a thread draws too: {other.name} at {other.place}"
            return _Finding("random", known_causes.SHARED, told, number)
    return _Finding("random", known_causes.RANDOM, told, number)


def _unwritten(made: int, maker: Operation, reader: Operation) -> _Finding:
    """Return the finding for an operation that read another's output, or data of other ranks."""
    if not maker.name.startswith(ALLOCATES):
        told = f"what came from other ranks differs; {reader.name} at {reader.place} is the first to read it"
        # Any source: this rank itself takes what comes first.
        return _Finding(
            "operation", known_operations.of_operation(maker.name), told, made, "any_source" not in maker.name
        )
    told = f"{reader.name} at {reader.place} read the memory that it gave, before all of it was written"
    return _Finding("uninitialised", known_causes.UNINITIALISED, told, made)


def _cause(
    stream: Stream, candidates: Sequence[Candidate], finding: _Finding, streams: Sequence[Stream]
) -> Cause:
    operation = stream.operations[finding.at]
    computed = finding.kind in COMPUTED
    hints = [] if computed else hints_near(stream, operation.place, streams)
    order = False
    taken = taken_before(candidates, stream, operation)
    if computed:  # what is not torch's own may have taken something while it ran
        custom = finding.kind == "operation" and "::" in operation.name
        taken = taken_inside(candidates, stream, finding.at) if custom else []
    near = nearest(taken, operation.place, finding.kind)
    drawn = names_listed(near, taken)
    near = [*drawn, *(each for each in near if each not in drawn)]
    if finding.kind == "random":  # its state comes from the seed, and from no clock
        # A generator of the program's own is seeded unseen; the line says so.
        own = [each for each in near if each.kind != "seed" and "seed" in each.place.text.lower()]
        given = [each for each in near if "generator" in operation.name]  # a library may have seeded it
        near = [each for each in near if each.kind == "seed"] or own or given
        near = [*(origin for each in near[:1] for origin in seeded_by(each, candidates)), *near]
        order = bool(near) and near[0].reordered
        if order:  # the seeds are what they should be: what matters is who comes first
            seeds = f"{near[0].name} was called with the same values in another order"
            finding = replace(finding, remedy=known_causes.FLOW, told=f"{finding.told}: {seeds}")
            near = [*hints[:MOST_HINTS], *near]
        else:
            unseeded = [hint for hint in hints if hint.name == known_causes.UNSEEDED_HINT]
            dropped = (known_causes.DROPPED, known_causes.STAYS_ON)
            drops = [hint for hint in hints if hint.name in dropped and hint.place == operation.place]
            hints = [*drops, *unseeded]
    told = {(each.place.file, each.place.line) for each in near}
    near += [hint for hint in hints if (hint.place.file, hint.place.line) not in told][:MOST_HINTS]
    remedy = finding.remedy
    # A clock elsewhere may be only printed.
    only = len(near) == 1 and near[0].kind not in ("clock", "hint", "file")
    only = only or (bool(near) and near[0].kind == "stamp" and is_written(near[0], near))
    direct = bool(near) and (near[0].place == operation.place or only or finding.kind == "random")
    direct = direct and not is_from_elsewhere(near[0])
    if near and (direct or computed) and not order:
        remedy = near[0].remedy or remedy
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
        made_at=operation.made_at if finding.kind == "random" else None,
        # Where a value came in is not yet where it came from.
        proven=finding.sure and (direct or computed or (not near and finding.kind != "outside")),
    )


def _hints_of(streams: Sequence[Stream]) -> list[Candidate]:
    found = [of_hint(*hint) for stream in streams for hint in stream.hints]
    return list(dict.fromkeys(found))


def _by_source(candidates: Sequence[Candidate], stream: str, hints: Sequence[Candidate] = ()) -> Cause:
    """Return a cause without an operation: only external values differed."""
    best = [*nearest(candidates, None, "source"), *hints]
    # Of several, each may be only printed; and so may a clock, a process number or a drawn name. That another
    # file was opened came of something else.
    proven = len(candidates) == 1 and best[0].kind not in ("clock", "process", "name", "file")
    proven = proven and not is_drawn_name(best[0]) and not is_from_elsewhere(best[0])
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
        remedy=(best[0].remedy if proven else None) or known_causes.OUTSIDE,
        proven=proven,
        candidates=tuple(best[:MOST_CANDIDATES]),
        told="no operation of torch differed",
    )
