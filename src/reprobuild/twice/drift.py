"""Operations of a program that moved between two images, and how far. Pure but for reading values.

Two releases of torch need not do the same operations, so those are compared that both did: the same operation
at the same line and module, counted at that place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .first_difference import kinds_apart, machine_of, pairs
from .kept_values import ulp_apart
from .records import Operation, ProgramLine, Stream

Place = tuple[str, ProgramLine, str, bool]


@dataclass(frozen=True, kw_only=True, slots=True)
class Moved:
    """An operation at a line whose output was another one."""

    operation: str
    place: ProgramLine
    module: str
    backward: bool
    stream: str
    times: int
    """How often it moved."""
    by_itself: int
    """How often of those its inputs were equal: it has moved itself. Else it only got other inputs."""
    ulp: int | None
    """The largest distance in ULP; None where no values were kept."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Drift:
    """The comparison of a program's operations in two images."""

    moved: tuple[Moved, ...]
    """One entry a line, operation and module: those that moved by themselves first, each in the program's
    order."""
    compared: int
    """Operations that both did."""
    only: tuple[int, int]
    """Operations that only the old image did, and only the new one."""
    restless: int
    """Operations at a line that are left out, since they are unstable even in the old image."""
    cut: bool
    """Whether a run did more than is traced."""
    kinds: tuple[str, ...]
    """What else is not the same in the two images, as the number of threads."""


def drift(old: Sequence[Stream], new: Sequence[Stream], *, without: Sequence[Moved] = ()) -> Drift:
    """Compare the traces of two runs, ``without`` what differs between two runs in one image."""
    restless = {(each.stream, each.operation, each.place, each.module, each.backward) for each in without}
    found: dict[tuple[str, Place], list[tuple[bool, int | None]]] = {}
    compared, only = 0, [0, 0]
    for a, b in pairs(old, new):
        if a is None or b is None:
            only[0] += len(a.operations) if a is not None else 0
            only[1] += len(b.operations) if b is not None else 0
            continue
        others = _counted(b)
        for key, operation in _counted(a).items():
            other = others.pop(key, None)
            if other is None:
                only[0] += 1
                continue
            compared += 1
            if operation.outputs == other.outputs or operation.empty:
                continue
            equal = [x for x, _ in operation.inputs] == [x for x, _ in other.inputs]
            itself = equal and operation.plain == other.plain
            far = ulp_apart(operation, other, (a, b))
            found.setdefault((a.label, key[0]), []).append((itself, far))
        only[1] += len(others)
    moved = tuple(
        Moved(
            operation=place[0],
            place=place[1],
            module=place[2],
            backward=place[3],
            stream=label,
            times=len(each),
            by_itself=sum(itself for itself, _ in each),
            ulp=max((far for _, far in each if far is not None), default=None),
        )
        for (label, place), each in found.items()
        if (label, *place) not in restless
    )
    return Drift(
        moved=tuple(sorted(moved, key=lambda each: not each.by_itself)),
        compared=compared,
        only=(only[0], only[1]),
        restless=len(restless),
        kinds=kinds_apart(machine_of(old), machine_of(new), "now"),
        cut=any(stream.cut for stream in (*old, *new)),
    )


def _counted(stream: Stream) -> dict[tuple[Place, int], Operation]:
    seen: Counter[Place] = Counter()
    found = {}
    for operation in stream.operations:
        place = (operation.name, operation.place, operation.module, operation.backward)
        found[place, seen[place]] = operation
        seen[place] += 1
    return found
