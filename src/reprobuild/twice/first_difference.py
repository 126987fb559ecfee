"""Find the first difference of two runs, in the order of execution. Pure."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Literal

from ..selftest.distance import of_values
from .databases import HEAD as DATABASE
from .event_files import EVENTS
from .file_values import value_lines
from .library_formats import HEAD
from .records import Moment, MomentPart, Stream
from .text_differences import TextDifference, Texts
from .written import WrittenFile

DATA = ("batch", "inputs", "named inputs")
"""Parts that come before anything is computed from them."""
ITEM = 8
"""Bytes of the digest of a tensor or an item of a batch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Parting:
    """The first difference of a process between two runs."""

    kind: Literal["value", "flow", "length", "process"]
    """Another value; other things done; one went on longer; a process that only one run has."""
    stream: str
    moment: int
    """The number of the record in its process, from 0."""
    label: str
    part: str
    names: tuple[str, ...] = ()
    """The tensors that differ, in the order of the model."""
    of: int = 0
    """How many the group has."""
    items: tuple[int, ...] = ()
    """The items of a batch that differ, by their index."""
    reordered: bool = False
    """Whether the batch has the same items in another order."""
    equal: tuple[str, ...] = ()
    """What of the same moment was equal before."""
    generator: str = ""
    """The random generator whose state differed first, if before this."""
    generator_label: str = ""
    told: str = ""
    """For other kinds than ``value``: what each run did."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TimelineRow:
    """One moment of both runs, for the page."""

    label: str
    parted: tuple[str, ...]
    loss: tuple[float, float] | None
    ulp: int | None
    """The distance of the losses, or else of the parameters that were sampled."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EndDifference:
    """A difference after the program has ended."""

    what: str
    told: str
    of: str = ""
    """The stream or file that has it, where ``what`` is a line of that."""

    @property
    def where(self) -> str:
        """The stream or file that has it, or what differs as a whole."""
        return self.of or self.what


_MACHINE = ("torch", "python", "cpu", "threads", "deterministic", "GPU", "driver", "cuDNN")


def machine_of(streams: Sequence[Stream]) -> dict[str, str]:
    """Return the kind of machine that a run says it was on."""
    found: dict[str, str] = {}
    for stream in streams:  # a launcher need not use the GPUs that its ranks do
        found = {**stream.torch, **found}
    return {key: found[key] for key in _MACHINE if found.get(key)}


def kinds_apart(one: Mapping[str, str], other: Mapping[str, str], word: str) -> tuple[str, ...]:
    """Return what differs between two kinds: ``threads 1, here 2``, with ``word`` before the other.

    A driver that is unknown on both sides may be another one.
    """
    return tuple(
        f"{name} {one.get(name, 'unknown')}, {word} {other.get(name, 'unknown')}"
        for name in sorted(one.keys() | other.keys())
        if one.get(name) != other.get(name)
    ) + ("driver unknown",) * ("GPU" in one and not one.get("driver") and not other.get("driver"))


def pairs(one: Sequence[Stream], other: Sequence[Stream]) -> list[tuple[Stream | None, Stream | None]]:
    """Return the processes of two runs side by side: by rank, worker, name and program.

    Of several that have these in common, such as the workers of a pool, those that did the same belong
    together, whichever began first; the rest by their order.
    """
    groups: dict[tuple[str, ...], tuple[list[Stream], list[Stream]]] = {}
    for side, streams in enumerate((one, other)):
        for stream in streams:
            groups.setdefault(stream.key, ([], []))[side].append(stream)
    return [row for left, right in groups.values() for row in _side_by_side(left, right)]


def _side_by_side(one: list[Stream], other: list[Stream]) -> list[tuple[Stream | None, Stream | None]]:
    if len(one) < 2 and len(other) < 2:
        return list(zip_longest(one, other))
    alike: dict[object, deque[int]] = defaultdict(deque)
    for at, stream in enumerate(other):
        alike[_work(stream)].append(at)
    found = [same.popleft() if (same := alike.get(_work(stream))) else None for stream in one]
    taken = set(found)
    rest = deque(stream for at, stream in enumerate(other) if at not in taken)
    rows: list[tuple[Stream | None, Stream | None]] = [
        (stream, other[at] if at is not None else rest.popleft() if rest else None)
        for stream, at in zip(one, found, strict=True)
    ]
    return [*rows, *((None, stream) for stream in rest)]


def _work(stream: Stream) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """Return what a process did, without its generators, which differ where nobody seeds them."""
    return tuple(
        (each.label, tuple((p.name, p.digest) for p in each.parts if not p.name.startswith("random ")))
        for each in stream.moments
    )


def first_parting(one: Sequence[Stream], other: Sequence[Stream]) -> Parting | None:
    """Return where two runs part first: the earliest moment of all processes, the first process among
    equals.
    """
    found = [parting for a, b in pairs(one, other) if (parting := _part_of(a, b)) is not None]
    return min(found, key=lambda parting: parting.moment, default=None)


def _part_of(one: Stream | None, other: Stream | None) -> Parting | None:
    if one is None or other is None:
        there = one or other
        if there is None or not there.moments:
            return None
        run = "1" if one is not None else "2"
        kind = "thread" if there.is_thread else "process"
        told = f"only run {run} has the {kind} {there.label or ' '.join(there.argv[:1]) or 'without a name'}"
        return Parting(
            kind="process",
            stream=there.label,
            moment=there.moments[0].number,
            label=there.moments[0].label,
            part="",
            told=told,
        )
    generator = label = ""
    for number, (a, b) in enumerate(zip(one.moments, other.moments, strict=False)):
        if a.label != b.label:
            before = one.moments[number - 1].label if number else "the start"
            told = f"after {before}, run 1 came to {a.label}, run 2 to {b.label}"
            return Parting(
                kind="flow", stream=one.label, moment=a.number, label=a.label, part="", told=told,
                generator=generator, generator_label=label,
            )  # fmt: skip
        parting = _in_moment(a, b, one.label)
        if parting is not None:
            return replace(parting, generator=generator, generator_label=label)
        if not generator:
            generator = next((x.name[7:] for x, y in _randoms(a, b) if x.digest != y.digest), "")
            label = a.label if generator else ""
    if len(one.moments) != len(other.moments):
        shorter, longer = sorted((one, other), key=lambda stream: len(stream.moments))
        at = len(shorter.moments)
        runs = ("1", "2") if shorter is one else ("2", "1")
        told = f"run {runs[0]} ended there, run {runs[1]} went on to {longer.moments[at].label}"
        before = shorter.moments[-1].label if at else "the start"
        return Parting(
            kind="length", stream=one.label, moment=longer.moments[at].number, label=before, part="",
            told=told, generator=generator, generator_label=label,
        )  # fmt: skip
    return None


def _randoms(a: Moment, b: Moment) -> list[tuple[MomentPart, MomentPart]]:
    return [
        (x, y)
        for x, y in zip(a.parts, b.parts, strict=False)
        if x.name == y.name and x.name.startswith("random ")
    ]


def _in_moment(a: Moment, b: Moment, stream: str) -> Parting | None:
    equal: list[str] = []
    # A generator that nobody seeded is in another state in every run, and matters only if something draws.
    first, second = ([p for p in m.parts if not p.name.startswith("random ")] for m in (a, b))
    for x, y in zip(first, second, strict=False):
        if x.name != y.name:
            told = f"run 1 went on with {x.name}, run 2 with {y.name}"
            return Parting(
                kind="flow", stream=stream, moment=a.number, label=a.label, part=x.name, equal=tuple(equal),
                told=told,
            )  # fmt: skip
        if x.digest != y.digest:
            rows, reordered = _items(x, y)
            names = a.names.get(x.name, ())
            grouped = len(names) * ITEM == len(x.detail)
            return Parting(
                kind="value", stream=stream, moment=a.number, label=a.label, part=x.name,
                names=tuple(names[at] for at in rows) if grouped else (), of=len(names),
                items=() if grouped else rows, reordered=reordered and not grouped, equal=tuple(equal),
            )  # fmt: skip
        equal.append(x.name)
    if len(first) != len(second):
        return Parting(
            kind="flow", stream=stream, moment=a.number, label=a.label, part="", equal=tuple(equal),
            told=f"things done there: {len(first)} in run 1, {len(second)} in run 2",
        )  # fmt: skip
    return None


def _items(x: MomentPart, y: MomentPart) -> tuple[tuple[int, ...], bool]:
    one, other = ([p.detail[i : i + ITEM] for i in range(0, len(p.detail), ITEM)] for p in (x, y))
    if len(one) != len(other):
        return (), False
    return tuple(i for i, (p, q) in enumerate(zip(one, other, strict=True)) if p != q), sorted(one) == sorted(
        other
    )


def timeline(one: Stream, other: Stream) -> list[TimelineRow]:
    """Return what parted at each moment that both runs have, and how far."""
    rows = []
    for a, b in zip(one.moments, other.moments, strict=False):
        parted = tuple(
            dict.fromkeys(
                x.name
                for x, y in zip(a.parts, b.parts, strict=False)
                if x.name != y.name or x.digest != y.digest
            )
        )
        loss = (a.losses[-1], b.losses[-1]) if a.losses and b.losses else None
        distances = [of_values(a.losses, b.losses), of_values(a.sample, b.sample)]
        rows.append(
            TimelineRow(
                label=a.label,
                parted=parted,
                loss=loss,
                ulp=next((found for found in distances if found is not None), None),
            )
        )
    return rows


def lines_apart(
    texts: Texts, one: Sequence[str], other: Sequence[str], what: str, *, many: bool
) -> tuple[list[EndDifference], list[TextDifference]]:
    """Compare lines; with ``many`` processes, whose lines interleave, in any order."""
    number, explained = texts.compare(one, other, what, many=many)
    if number is None:
        return [], explained
    shown = [repr(lines[number][:160]) if number < len(lines) else "nothing" for lines in (one, other)]
    where = f"line {number + 1}"
    if texts.apart is not None:
        shown, where = [repr(line[:160]) for line in texts.apart], "a line"
    told = f"run 1 wrote {shown[0]}, run 2 {shown[1]}"
    return [EndDifference(what=f"{where} of {what}", told=told, of=what)], explained


def files_apart(
    texts: Texts, one: Sequence[WrittenFile], other: Sequence[WrittenFile]
) -> tuple[list[EndDifference], list[TextDifference]]:
    """Compare what two runs wrote. Files of one path, but for drawn names, are compared in their order."""
    found: list[EndDifference] = []
    explained: list[TextDifference] = []
    sides: list[Mapping[str, list[WrittenFile]]] = []
    for files in (one, other):
        by_path: dict[str, list[WrittenFile]] = defaultdict(list)
        for file in files:
            by_path[file.path].append(file)
        sides.append(by_path)
    for path in sorted(sides[0].keys() | sides[1].keys()):
        first, second = sides[0].get(path, []), sides[1].get(path, [])
        if len(first) != len(second):
            told = f"run 1 wrote {len(first)} of that name, run 2 {len(second)}"
            found.append(EndDifference(what=f"file {path}", told=told))
            continue
        for a, b in zip(first, second, strict=True):
            if a.digest == b.digest and a.lines == b.lines:  # a database's rows may be in another file
                continue
            if a.lines is not None and b.lines is not None:
                ends, same = lines_apart(texts, a.lines, b.lines, f"file {path}", many=False)
                found += ends
                explained += same
                beside = "clock times of its records" if path.endswith(EVENTS) else ""
                head = a.lines[0] if a.lines else ""
                beside = "difference beside its rows" if head.startswith(DATABASE) else beside
                beside = "difference beside its values" if head.startswith(HEAD) else beside
                if a.lines == b.lines and beside:
                    sizes = (f"{a.size} bytes", f"{b.size} bytes")
                    explained.append(TextDifference(f"file {path}", sizes, beside))
            elif (end := _bytes_apart(a, b)) is not None:
                values = _values_apart(texts, a, b)
                found += [end] if values is None else []
                explained += values or []
            else:
                sizes = (f"{a.size} bytes", f"{b.size} bytes")
                explained.append(TextDifference(f"file {path}", sizes, "difference beside its tensors"))
    return found, explained


def _values_apart(texts: Texts, one: WrittenFile, other: WrittenFile) -> list[TextDifference] | None:
    """Return what differs in two files of bytes, all of which is explained; None: a result does."""
    if not one.content or not other.content:
        return None
    lines = [value_lines(file.content, side) for file, side in zip((one, other), texts.sides, strict=True)]
    if lines[0] is None or lines[1] is None:
        return None
    ends, explained = lines_apart(texts, lines[0], lines[1], f"file {one.path}", many=False)
    if ends:
        return None
    sizes = (f"{one.size} bytes", f"{other.size} bytes")
    return explained or [TextDifference(f"file {one.path}", sizes, "difference beside its content")]


def _bytes_apart(one: WrittenFile, other: WrittenFile) -> EndDifference | None:
    if one.tensors and other.tensors:
        names = [n for n in one.tensors if one.tensors[n] != other.tensors.get(n)]
        names += [n for n in other.tensors if n not in one.tensors]
        if not names:
            return None  # the same tensors, in an archive with another time stamp, for example
        told = f"{len(names)} of {len(one.tensors)} tensors differ, the first is {names[0]!r}"
        return EndDifference(what=f"file {one.path}", told=told)
    if one.size != other.size:
        return EndDifference(
            what=f"file {one.path}", told=f"run 1 wrote {one.size} bytes, run 2 {other.size}"
        )
    return EndDifference(what=f"file {one.path}", told=f"{one.size} bytes, not the same in both")


def status_text(status: int | None) -> str:
    """Say how a run ended."""
    if status is None:
        return "did not end within the time limit"
    if status < 0 or status > 128:
        return f"was ended by signal {-status if status < 0 else status - 128}"
    return f"ended with status {status}"
