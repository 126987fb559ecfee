"""Which statements of two runs belong together: each thread of both, side by side. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from .line_records import LineRecord, LineStream
from .records import ProgramLine

MOST_SKIPPED = 4000
"""Statements of both runs that are passed over to find the next that they have in common."""
MOST_PARTINGS = 500
"""Times that a thread of both runs does different things, before the rest is left out."""
IN_COMMON = 3
"""Statements that have to be in common for the runs to be side by side again."""
Process = tuple[tuple[str, ...], int]
"""What a process has in common with the other run's, and its number among those that are alike."""


def paired(
    one: Sequence[LineStream], other: Sequence[LineStream]
) -> Iterator[tuple[LineRecord, LineRecord | None, Process]]:
    """Yield what `_side_by_side` does for each thread, with its process."""
    sides: list[Mapping[tuple[tuple[str, ...], str], list[list[LineRecord]]]] = []
    for streams in (one, other):
        found: dict[tuple[tuple[str, ...], str], list[list[LineRecord]]] = defaultdict(list)
        for stream in streams:
            threads: dict[str, list[LineRecord]] = defaultdict(list)
            for record in stream.records:
                threads[record.thread].append(record)
            for thread, records in threads.items():
                found[stream.key, thread].append(records)
        sides.append(found)
    for key, lists in sides[0].items():
        for number, (a, b) in enumerate(zip(lists, sides[1].get(key, []), strict=False)):
            yield from ((x, y, (key[0], number)) for x, y in _side_by_side(a, b))


def _side_by_side(
    a: Sequence[LineRecord], b: Sequence[LineRecord]
) -> Iterator[tuple[LineRecord, LineRecord | None]]:
    """Yield the statements that both runs have in common, and the last before each at which they part."""
    i = j = parted = 0
    last: LineRecord | None = None
    while i < len(a) and j < len(b) and parted < MOST_PARTINGS:
        if _same(a[i], b[j]):
            last = a[i]
            yield a[i], b[j]
            i, j = i + 1, j + 1
            continue
        if last is not None:
            yield last, None
            last = None
        parted += 1
        skipped = _skipped(a, b, i, j)
        if skipped is None:
            return
        i, j = skipped


def _skipped(a: Sequence[LineRecord], b: Sequence[LineRecord], i: int, j: int) -> tuple[int, int] | None:
    """Return where the runs do the same again."""
    where: dict[tuple[str, ProgramLine], list[int]] = defaultdict(list)
    for at in range(j, min(j + MOST_SKIPPED, len(b))):
        where[b[at].kind, b[at].place].append(at)
    best: tuple[int, int, int] | None = None
    for at in range(i, min(i + MOST_SKIPPED, len(a))):
        if best is not None and at - i >= best[0]:
            break
        for there in where.get((a[at].kind, a[at].place), ()):
            cost = at - i + there - j
            if best is not None and cost >= best[0]:
                break
            ahead = range(min(IN_COMMON, len(a) - at, len(b) - there))
            if all(_same(a[at + k], b[there + k]) for k in ahead):
                best = (cost, at, there)
                break
    return None if best is None else best[1:]


def _same(a: LineRecord, b: LineRecord) -> bool:
    return a.kind == b.kind and a.place == b.place
