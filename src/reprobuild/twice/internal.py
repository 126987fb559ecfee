"""Memory that an operation keeps for its own backward pass, whose padding may hold anything.

Such an output, as the workspace of a recurrent layer, is garbage in part: it differs in each run, and nothing
comes of it. It is known by who reads it: the operation's own backward and nobody else. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from .records import Operation

Place = tuple[str, int]
"""An operation's name and which of its outputs."""
_SCRATCH = "uint8["
"""Bytes beside other outputs are such memory also where nobody reads them."""


def internal_outputs(streams: Iterable[Sequence[Operation]]) -> frozenset[Place]:
    """Return the outputs that only their operations' own backward reads, wherever they are read."""
    readers: dict[Place, set[str]] = defaultdict(set)
    scratch: set[Place] = set()
    for operations in streams:
        for operation in operations:
            for at in range(1, len(operation.outputs)):
                if at < len(operation.shapes) and operation.shapes[at].startswith(_SCRATCH):
                    scratch.add((operation.name, at))
            for digest, made in operation.inputs:
                maker = operations[made] if 0 <= made < len(operations) else None
                for at in _places(maker, digest):
                    readers[maker.name if maker else "", at].add(operation.name)
    return frozenset(
        place
        for place in readers.keys() | scratch
        if place[1] > 0
        and (readers.get(place) or place in scratch)
        and all(_is_backward(name, place[0]) for name in readers.get(place, ()))
    )


def without_internal(operations: Sequence[Operation], internal: frozenset[Place]) -> list[Operation]:
    """Return the operations as if what is internal were equal in each run."""
    places: Mapping[str, set[int]] = defaultdict(set)
    for name, at in internal:
        places[name].add(at)
    found = []
    for operation in operations:
        hidden = places.get(operation.name, ())
        found.append(
            replace(
                operation,
                outputs=tuple("" if at in hidden else x for at, x in enumerate(operation.outputs)),
                inputs=tuple(_input(each, operations, places) for each in operation.inputs),
            )
        )
    return found


def _input(
    given: tuple[str, int], operations: Sequence[Operation], places: Mapping[str, set[int]]
) -> tuple[str, int]:
    digest, made = given
    maker = operations[made] if 0 <= made < len(operations) else None
    if maker is None or maker.name not in places:
        return given
    return ("", made) if any(at in places[maker.name] for at in _places(maker, digest)) else given


def _places(maker: Operation | None, digest: str) -> list[int]:
    return [] if maker is None else [at for at, each in enumerate(maker.outputs) if each == digest]


def _is_backward(reader: str, maker: str) -> bool:
    return reader.partition(".")[0].startswith(maker.partition(".")[0].rstrip("_") + "_backward")
