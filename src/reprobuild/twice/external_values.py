"""Values that a program took from outside of its own computation and that differ between two runs: clocks,
seeds, draws, listings; and lines of its text that may give others in each run. Pure.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from . import known_causes
from .records import Operation, ProgramLine, Source, Stream

SHORTLY = 8
"""Values from outside between one that makes a seed and the seeding: seeds of other generators, and so on."""
_CHANGING = re.compile(r"\btmp[a-z0-9_]{8}|\btmp[a-z0-9_]{0,7}$|\d+")
"""Dates and random parts in the names of folders, of which the recorder keeps the beginning."""
_TEMPORARY = re.compile(r"\btmp[a-z0-9_]{8}")
_SEEDS = ("clock", "process", "machine", "entropy", "draw", "address", "name")
"""Kinds of values that programs make seeds of."""
_ORDER = (
    "seed",
    "draw",
    "entropy",
    "order",
    "computed",
    "memory",
    "timeout",
    "machine",
    "mtime",
    "listing",
    "address",
    "process",
    "name",
    "stamp",
    "content",
    "file",
    "clock",
)


_TRUTH = re.compile(
    r"\b(?:if|and)\s+(?:not\s+)?[\w.]*(?:seed|random_state|rng)\w*\s*(?::|\b(?:else|and|or)\b)"
    r"|^[\w.]+ = [\w.]*(?:seed|random_state|rng)\w* or "
)
"""What takes a seed for true or false."""


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
    reordered: bool = False
    """Whether both runs took the same values at that line, in another order."""
    made_for: ProgramLine | None = None
    """The line that gave None to the function which takes this value as a default, that made the system's
    generator which gave it, that asks the query or calls for the time or the draw, or at which an object
    differs that this one handed over.
    """

    @property
    def remedy(self) -> known_causes.Remedy | None:
        """What is known about it."""
        if self.kind == "hint":
            return known_causes.of_hint(self.name)
        beside = self.made_for.text if self.made_for is not None else ""
        counts_zero = self.kind in ("draw", "seed", "entropy") and _TRUTH.search(beside)
        return known_causes.ZERO if counts_zero else known_causes.of_source(self.kind, self.name)


def differing(streams: Sequence[tuple[Stream, Stream]]) -> list[Candidate]:
    """Return what each pair of streams took at one line and not with the same value, each line once."""
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
                if (
                    x.value != y.value
                    and _same_input(x, y)
                    and (x.kind != "file" or _CHANGING.sub("", x.shown) != _CHANGING.sub("", y.shown))
                ):
                    order = [sorted(source.value for _, source in calls[key]) for calls in sides]
                    if x.kind == "order" and order[0] != order[1] and x.name not in BY_NUMBER:
                        break  # other things, not another order
                    found.setdefault(
                        key,
                        Candidate(
                            x.kind,
                            x.name,
                            x.place,
                            (x.shown, y.shown),
                            at,
                            id(a),
                            order[0] == order[1],
                            x.made_for,
                        ),
                    )
                    break
    return [_with_writer(each, streams) for each in found.values()]


def _same_input(a: Source, b: Source) -> bool:
    """Return whether what a library computed came from the same in both runs."""
    return a.kind != "computed" or a.shown.rpartition(" from ")[2] == b.shown.rpartition(" from ")[2]


BY_NUMBER = (
    *("as_completed", "concurrent.futures.wait", "asyncio.as_completed", "asyncio.wait"),
    "multiprocessing.connection.wait",
)
"""What gives the numbers of tasks or connections: these are others where only the first counts, or where who
is served first comes more often.
"""
_NONE_GIVEN = "('none given'"
"""How the recorder shows that a generator was made or seeded without a seed."""
READ = "what was read from "
"""How the recorder names what a file held, before the file's path."""
UNWRITTEN = ", which no recorded process wrote,"


def is_written(stamp: Candidate, candidates: Sequence[Candidate]) -> bool:
    """Return whether the line of a time in an archive wrote a file that differed when it was read."""
    return any(each.kind == "content" and f"which {stamp.place} wrote" in each.name for each in candidates)


def _with_writer(candidate: Candidate, streams: Sequence[tuple[Stream, Stream]]) -> Candidate:
    """Say of a file that already differed when it was read which line wrote it, if a recorded one did."""
    if candidate.kind != "content":
        return candidate
    path = candidate.name.removeprefix(READ)
    sources = (source for stream, _ in streams for source in stream.sources)
    place = next((each.place for each in sources if each.kind == "written" and each.name == path), None)
    return replace(candidate, name=f"{READ}{path}{UNWRITTEN if place is None else f', which {place} wrote,'}")


def _out_of_turn(a: Stream, b: Stream) -> list[Candidate]:
    """Return the first draw from each random generator of Python's or NumPy's that only one run made."""
    found = []
    for module in ("random", "numpy.random"):
        draws = [
            [
                (at, s)
                for at, s in enumerate(stream.sources)
                if s.kind == "draw" and s.name.rpartition(".")[0] == module and not s.name.endswith(_SEED)
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


def nearest(candidates: Sequence[Candidate], place: ProgramLine | None, kind: str) -> list[Candidate]:
    """Return the candidates for a finding of that kind at a place, the likeliest first."""

    def rank(candidate: Candidate) -> tuple[int, int, int]:
        there, here = candidate.place, place
        if kind == "random" and candidate.kind == "seed":
            near = 0
        elif here is None or there.file != here.file or candidate.kind == "content":
            near = 3  # what made a file's content comes before who reads it
        elif there.line == here.line:
            near = 1
        else:
            near = 2 if there.function == here.function else 3
        what = "name" if is_drawn_name(candidate) else candidate.kind
        return near, _ORDER.index(what) if what in _ORDER else len(_ORDER), -candidate.at

    ranked = sorted(candidates, key=rank)
    # Where a generator was seeded with another value, all its draws differ.
    for seed in [each for each in ranked if is_seed(each)]:
        module = seed.name.rpartition(".")[0]
        if ranked[0].kind in ("draw", "seed") and ranked[0].name.rpartition(".")[0] == module:
            origin = seeded_by(seed, candidates)
            ranked = [*origin, seed, *(each for each in ranked if each is not seed and each not in origin)]
    return ranked


def is_from_elsewhere(candidate: Candidate) -> bool:
    """Return whether it is a file that something else wrote: who reads it made nothing different."""
    return candidate.kind == "content" and candidate.name.endswith(UNWRITTEN)


def is_drawn_name(candidate: Candidate) -> bool:
    """Return whether it is a random value whose usual purpose is a name."""
    return candidate.name.startswith(("uuid.", "secrets.token_", "mktemp"))


def names_listed(ranked: Sequence[Candidate], candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the random temporary names that the likeliest candidate lists; sorting does not fix those."""
    listing = ranked[0] if ranked and ranked[0].kind == "listing" else None
    if listing is None or not all(_TEMPORARY.search(value) for value in listing.values):
        return []
    drawn = [
        each
        for each in candidates
        if each.kind == "name" and each.stream == listing.stream and each.at < listing.at
    ]
    return drawn[-1:]


def taken_before(candidates: Sequence[Candidate], stream: Stream, operation: Operation) -> list[Candidate]:
    """Return the candidates from before an operation."""
    here = id(stream)
    return [each for each in candidates if each.stream != here or each.at < operation.sources]


def taken_inside(candidates: Sequence[Candidate], stream: Stream, at: int) -> list[Candidate]:
    """Return the candidates that were taken while an operation ran, or since the one before it."""
    since = stream.operations[at - 1].sources if at else 0
    till = stream.operations[at].sources
    return [each for each in candidates if each.stream == id(stream) and since <= each.at < till]


def seeded_by(seed: Candidate, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the value that a generator was seeded with, where it came from outside shortly before."""
    earlier = [
        each for each in candidates if each.stream == seed.stream and each.at < seed.at and not is_seed(each)
    ]
    given = [each for each in earlier if _is_in(each, seed)]
    latest = max(given or earlier, key=lambda each: each.at, default=None)
    if is_unseeded(seed) or latest is None or latest.kind not in _SEEDS:
        return []
    return [latest] if given or seed.at - latest.at <= SHORTLY else []


def is_unseeded(seed: Candidate) -> bool:
    """Return whether a generator was made or seeded without a seed."""
    return all(value.startswith(_NONE_GIVEN) for value in seed.values)


def _is_in(candidate: Candidate, seed: Candidate) -> bool:
    """Return whether a generator was seeded with just the values of a candidate, in both runs."""
    return candidate.kind in _SEEDS and all(
        re.search(rf"(?<![\w.]){re.escape(value)}(?![\w.])", shown)
        for value, shown in zip(candidate.values, seed.values, strict=True)
    )


_SEED = (".seed", ".manual_seed", ".default_rng")
"""How the names end of what makes or seeds a generator."""


def is_seed(candidate: Candidate) -> bool:
    """Return whether it is the seed of a generator."""
    return candidate.kind == "seed" or candidate.name.endswith(_SEED)


def of_hint(what: str, at: ProgramLine, asked_by: ProgramLine | None = None) -> Candidate:
    """Return a line of the program's text that may be it as a candidate."""
    return Candidate("hint", what, at, ("", ""), 0, -1, made_for=asked_by)


def hints_near(stream: Stream, place: ProgramLine, streams: Sequence[Stream]) -> list[Candidate]:
    """Return what the program's text says that may be it, the lines near a place first.

    First come those of what few programs do; then those of other processes, as what they left in a database
    may be what this one computes with.
    """
    found = [
        of_hint(*hint)
        for each in (stream, *streams)
        for hint in each.hints
        if each is stream or known_causes.of_hint(hint[0]) in known_causes.SPECIAL
    ]
    found.sort(
        key=lambda hint: (
            known_causes.of_hint(hint.name) not in known_causes.SPECIAL,
            hint.place.file != place.file,
            abs(hint.place.line - place.line),
        )
    )
    return list(dict.fromkeys(found))
