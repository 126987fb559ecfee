"""Find the statements of the program at which a difference between two runs came in. Pure.

A statement is a *divergence* if it found the same in both runs and left something else, and no statement
that it led to did. A value that differs is followed by its two digests: whoever has these two later has it
from there. So each divergence has the statements that it reached; a clock that is only printed reaches few.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .line_records import RETURNED, LineRecord, LineStream
from .paired_lines import Process, paired
from .records import ProgramLine

SMALL = "~"
"""The recorder's mark of a value so small that another one is equal by chance."""

FEW = 0.1
"""Share of the most that a divergence reached below which one comes after the others."""

_WHOLE = re.compile(r"[\[\]{}\d,: …-]+")
"""Whole numbers, as the recorder shows them."""
Pair = tuple[str, str]


@dataclass(slots=True)
class Divergence:
    """A statement at which a difference came in."""

    place: ProgramLine
    end: int
    """The number of its last line."""
    at: int
    """When it first did, by the clock of run 1."""
    shown: tuple[str, str] = ("", "")
    """A value of each run; empty where both did the same and then went on in another way."""
    name: str = ""
    """The name of that value."""
    given: LineRecord | None = None
    """The statement, or the call, that has what differs under names; None: none is known."""
    names: list[str] = field(default_factory=list)
    """These names."""
    inside: ProgramLine | None = None
    """The line of the part that differs, of a value that is written out over several lines."""
    handed: LineRecord | None = None
    """The statement that left an equal object, which is another when another thread takes it."""
    reached: set[ProgramLine] = field(default_factory=set)
    """Statements that read what came from it."""
    perhaps: set[ProgramLine] = field(default_factory=set)
    """Statements that read something that differs and that came from this divergence or from another."""
    late: bool = False
    """Whether the runs had done different things before, of which it may have come."""
    sure: bool = False
    """Whether all that it read was equal; else that had become different where no statement was seen."""
    thread: str = ""
    """The one that runs it."""

    @property
    def told_place(self) -> ProgramLine:
        """Return the line to name: where an object was handed on, if it changed on its way."""
        return (self.inside or self.place) if self.handed is None else self.handed.place

    @property
    def given_place(self) -> ProgramLine:
        """Return where that has names."""
        return self.place if self.given is None else self.given.place

    @property
    def has_own_names(self) -> bool:
        """Return whether the names are of its own thread: a library's get their tasks in any order."""
        return self.given is not None and self.given.thread == self.thread

    @property
    def reach(self) -> int:
        """Return how many statements it may have reached."""
        return len(self.reached | self.perhaps)


@dataclass(frozen=True, slots=True)
class Decision:
    """A statement after which the runs did different things, or which chose another whole number,
    because of a value that differed.
    """

    place: ProgramLine
    came_from: frozenset[ProgramLine]
    """The divergences that this value came from."""


@dataclass(frozen=True, slots=True)
class FollowedLines:
    """What the traces of two runs have told."""

    divergences: list[Divergence]
    """Those that reached something, the earliest first; last those that are not certain."""
    decisions: list[Decision]
    """In the order of run 1."""
    shared: list[tuple[ProgramLine, ProgramLine | None]] = field(default_factory=list)
    """Where threads draw in turn from one generator, the first place first, and the line that calls there."""
    callers: Mapping[ProgramLine, ProgramLine] = field(default_factory=dict)
    """Of statements that return, the first one of another function that got what they return."""


def follow(
    one: Sequence[LineStream],
    other: Sequence[LineStream],
    *,
    harmless: frozenset[ProgramLine] = frozenset(),
) -> FollowedLines:
    """Compare the traces of two runs.

    What came from ``harmless`` statements counts as equal afterwards.
    """
    search = _Search(_numbered(one), _numbered(other), held=(_held(one), _held(other)), harmless=harmless)
    for a, b, process in sorted(paired(one, other), key=lambda each: each[0].at):
        if b is None:
            search.parted(a, process)
        else:
            search.take(a, b, process)
    search.end()
    found = [each for each in search.divergences.values() if each.reached or each.perhaps]
    most = max((each.reach for each in found), default=0)
    found.sort(key=lambda each: (not each.sure, each.late, each.reach < FEW * most, each.at))
    return FollowedLines(found, [*search.decisions], shared_generators(one), _callers(one))


def shared_generators(streams: Sequence[LineStream]) -> list[tuple[ProgramLine, ProgramLine | None]]:
    """Return the lines at which threads of a process draw from a generator as another thread has left it.

    Each comes with the line of the same thread that called its function, if there is one.

    One that the main thread made, and that one other thread has from then on, is not shared.
    """
    found: dict[tuple[ProgramLine, ProgramLine | None], None] = {}
    for stream in streams:
        by_number = {each.number: each for each in stream.records if each.kind != "call"}
        left: dict[str, LineRecord] = {}
        """By the state of a generator, the statement that left it so."""
        turns: dict[tuple[ProgramLine, ProgramLine | None], set[tuple[str, str]]] = defaultdict(set)
        for record in stream.records:
            for name, place in record.generators.items():
                before = left.get(record.before.get(name, ""))
                if before is not None and before.thread != record.thread:
                    caller = by_number.get(record.up)
                    called = caller.place if caller is not None and caller.thread == record.thread else None
                    turns[place, called].add((before.thread, record.thread))
                left[record.after[name][0]] = record
        handed = set[tuple[str, str]]().union(*turns.values())
        if len({to for _, to in handed}) > 1:
            found.update(dict.fromkeys(turns))
    return list(found)


def _callers(streams: Sequence[LineStream]) -> dict[ProgramLine, ProgramLine]:
    found: dict[ProgramLine, ProgramLine] = {}
    for stream in streams:
        by_number = {each.number: each.place for each in stream.records if each.kind != "call"}
        for record in stream.records:
            if RETURNED in record.after and record.up in by_number:
                found.setdefault(record.place, by_number[record.up])
    return found


def _numbered(streams: Sequence[LineStream]) -> dict[int, LineRecord]:
    """Return the statement that led to each record, by the record's id."""
    found: dict[int, LineRecord] = {}
    for stream in streams:
        by_number = {each.number: each for each in stream.records if each.kind != "call"}
        found.update((id(each), by_number[each.up]) for each in stream.records if each.up in by_number)
    return found


def _held(streams: Sequence[LineStream]) -> frozenset[str]:
    """Return the digests of all that statements of a run left."""
    return frozenset(each for stream in streams for a in stream.records for each, _ in a.after.values())


class _Search:
    def __init__(
        self,
        *above: Mapping[int, LineRecord],
        held: tuple[frozenset[str], frozenset[str]],
        harmless: frozenset[ProgramLine],
    ) -> None:
        self._harmless = harmless
        self.divergences: dict[ProgramLine, Divergence] = {}
        self._above = above
        self._all = held
        self._came: dict[Pair, set[ProgramLine]] = {}
        """The divergences that two digests came from."""
        self._alone: tuple[dict[str, set[ProgramLine]], ...] = ({}, {})
        """The divergences that the digest of a value came from which only this run has."""
        self._open: dict[tuple[Process, str], list[tuple[int, set[ProgramLine]]]] = defaultdict(list)
        """Statements of a thread with a difference whose caller has not ended: number and divergences."""
        self.decisions: dict[Decision, None] = {}
        self._differed: dict[int, set[ProgramLine]] = {}
        """The divergences of records that have been found to differ, by the record's id."""
        self._parted: dict[Process, set[ProgramLine]] = {}
        """Of a process whose runs did different things, the divergences that this came from first."""
        self._returned: dict[tuple[Process, str], LineRecord] = {}
        """The last statement of a thread that returned another small value, as whether a time is over."""
        self._waiting: dict[tuple[Process, int], Divergence] = {}
        """Divergences of objects that a function was given and has not yet handed on."""
        self._besides: dict[ProgramLine, tuple[LineRecord, list[str]]] = {}
        """Of divergences that return what differs, what they have besides under names."""
        self._held: dict[tuple[Process, int], dict[str, tuple[LineRecord, str]]] = defaultdict(dict)
        """Of each thread the last statement that left an object, equal in both runs, and its name."""
        self._seeded: dict[tuple[Process, str], set[ProgramLine]] = {}
        """The divergences that a process's generator of a module was seeded from."""

    def take(self, a: LineRecord, b: LineRecord, process: Process) -> None:
        """Take the next statement that both runs have in common."""
        read, left = self._but_harmless(_read(a, b)), self._but_harmless(_left(a, b))
        inner = self._inner(a, process)
        drew = {name: (x, b.drew[name]) for name, x in a.drew.items() if name in b.drew}
        drawn = set[ProgramLine]().union(
            *(
                self._seeded.get((process, name), self._parted.get(process, ()))
                for name, (x, y) in drew.items()
                if x[0] != y[0]
            )
        )
        seeded = [name for name, (x, y) in drew.items() if "" != x[0] == y[0] and x[1] != y[1]]
        if a.kind == "call":
            roots = self._given(a, b, left, process) if left else inner
        elif not (read or left or seeded):
            roots = inner
        else:
            roots = inner | drawn | self._known(left)
            roots |= self._followed(a, read)
            self._reach(roots, a.place)
            if not roots and (left or seeded):
                roots = {self._entry(a, a, b, left, late=process in self._parted, sure=not read)}
                self._hand(self.divergences[a.place], a, left, process)
            self._name(a, left, roots)
            self._choose(a, b, left, roots)
        self._hold(a, left, process)
        for _, pair in left:
            self._came.setdefault(pair, set()).update(roots)
            small = pair[0].startswith(SMALL)
            if not small and pair[0] not in self._all[1] and pair[1] not in self._all[0]:
                for alone, each in zip(self._alone, pair, strict=True):
                    alone.setdefault(each, set()).update(roots)
        for name in drew:
            if drew[name][0][1] == drew[name][1][1]:
                self._seeded.pop((process, name), None)
            elif name in seeded or roots:  # seeded with what differs, or drawn from beside it
                self._seeded[process, name] = roots | self._seeded.get((process, name), set())
        if any(name == RETURNED and pair[0].startswith(SMALL) for name, pair in left):
            self._returned[process, a.thread] = a
        if read or left or inner or seeded:
            self._differed[id(a)] = roots
            self._open[process, a.thread].append((a.number, roots))

    def end(self) -> None:
        """Take what divergences have besides where nothing that they return has a name."""
        for place, (record, names) in self._besides.items():
            divergence = self.divergences[place]
            if not divergence.has_own_names:
                divergence.given, divergence.names = record, names

    def _choose(
        self, a: LineRecord, b: LineRecord, left: Sequence[tuple[str, Pair]], roots: set[ProgramLine]
    ) -> None:
        """Note a statement that made other whole numbers of what came from elsewhere, or took another of the
        values that both runs have.
        """
        if roots - {a.place} and any(_is_choice(a, b, name) or self._is_taken(pair) for name, pair in left):
            self._decide(a.place, roots)

    def _is_taken(self, pair: Pair) -> bool:
        return not pair[0].startswith(SMALL) and pair[0] in self._all[1] and pair[1] in self._all[0]

    def _decide(self, place: ProgramLine, roots: set[ProgramLine]) -> None:
        self.decisions.setdefault(Decision(place, frozenset(roots)))

    def _hold(self, a: LineRecord, left: Sequence[tuple[str, Pair]], process: Process) -> None:
        """Keep which objects a statement left equal."""
        differs = {name for name, _ in left}
        for name, told in a.objects.items():
            for each in told[:1]:
                found = self._waiting.get((process, each))
                if found is not None and found.handed is not None and found.handed.thread == a.thread:
                    found.handed, found.name = a, name
                    del self._waiting[process, each]
                if name in differs:
                    self._held[process, each].pop(a.thread, None)
                else:
                    self._held[process, each][a.thread] = (a, name)

    def _hand(
        self, found: Divergence, a: LineRecord, left: Sequence[tuple[str, Pair]], process: Process
    ) -> None:
        """Note the last statement of another thread that left an equal object which differs here."""
        for name, _ in left:
            for each in a.objects.get(name, ()):
                threads = self._held[process, each]
                others = [held for thread, held in threads.items() if thread != a.thread]
                if others and found.handed is None:
                    found.handed, found.name = max(others, key=lambda held: held[0].at)
                    found.shown = ("", "")
                    if found.handed.kind == "call":
                        self._waiting[process, each] = found

    def parted(self, a: LineRecord, process: Process) -> None:
        """Take the last statement before the runs did different things."""
        roots = self._differed.get(id(a)) or {a.place}
        if id(a) in self._differed:
            # What it called may have decided.
            inner = self._returned.get((process, a.thread))
            place = inner.place if inner is not None and inner.number > a.number else a.place
            self._decide(place, self._differed[id(a)])
        else:
            divergence = self.divergences.setdefault(
                a.place, Divergence(a.place, a.end, a.at, thread=a.thread)
            )
            divergence.sure = divergence.sure or a.kind == "branch"
            divergence.late = process in self._parted
        self._parted.setdefault(process, {each for each in roots if each in self.divergences})

    def _inner(self, a: LineRecord, process: Process) -> set[ProgramLine]:
        """Return the divergences of what this statement led to, which began after it and has ended."""
        roots: set[ProgramLine] = set()
        stack = self._open[process, a.thread]
        while a.kind != "call" and stack and stack[-1][0] > a.number:
            roots |= stack.pop()[1]
        return roots

    def _followed(self, a: LineRecord, read: Sequence[tuple[str, Pair]]) -> set[ProgramLine]:
        """Return where the differences that a statement reads came from."""
        roots: set[ProgramLine] = set()
        for _, pair in read:
            roots |= self._origin(pair)
        if any(pair not in self._came for _, pair in read):
            for divergence in self.divergences.values():
                divergence.perhaps.add(a.place)
        return roots

    def _given(
        self, a: LineRecord, b: LineRecord, left: Sequence[tuple[str, Pair]], process: Process
    ) -> set[ProgramLine]:
        """Return where what a function was given came from: if no other, the statement that led to it."""
        roots = self._known(left)
        callers = [above.get(id(each)) for above, each in zip(self._above, (a, b), strict=True)]
        if roots or callers[0] is None or callers[1] is None:
            return roots
        read = self._but_harmless(_read(callers[0], callers[1]))
        stack = self._open[process, a.thread]
        made = set[ProgramLine]().union(*(each for number, each in stack if number > callers[0].number))
        if read or made:  # what the statement has led to so far may have made it
            return made | self._followed(a, read)
        return {self._entry(callers[0], a, b, left, late=process in self._parted)}

    def _but_harmless(self, differ: list[tuple[str, Pair]]) -> list[tuple[str, Pair]]:
        """Return what differs without what came from harmless statements alone."""
        if not self._harmless:
            return differ
        return [each for each in differ if not (came := self._origin(each[1])) or not came <= self._harmless]

    def _known(self, left: Sequence[tuple[str, Pair]]) -> set[ProgramLine]:
        """Return who had these values before: a function that was called, a thread, another process."""
        found: set[ProgramLine] = set()
        for _, pair in left:
            if not pair[0].startswith(SMALL):
                found |= self._origin(pair)
        return found

    def _origin(self, pair: Pair) -> set[ProgramLine]:
        """Return the divergences that two values came from.

        Threads and processes hand on what they made in any order, so each run may have another of these
        values here. Each came from where it was made, if the other run has no such value at all: else it is
        the order that makes the difference, and it may come from here.
        """
        found = self._came.get(pair)
        if found is None and all(each in alone for alone, each in zip(self._alone, pair, strict=True)):
            found = self._alone[0][pair[0]] | self._alone[1][pair[1]]
        return found or set()

    def _reach(self, roots: set[ProgramLine], place: ProgramLine) -> None:
        for root in roots:
            self.divergences[root].reached.add(place)

    def _entry(
        self,
        of: LineRecord,
        a: LineRecord,
        b: LineRecord,
        left: Sequence[tuple[str, Pair]],
        *,
        late: bool,
        sure: bool = True,
    ) -> ProgramLine:
        place = of.place
        found = self.divergences.setdefault(
            place, Divergence(place, of.end, a.at, late=late, thread=of.thread)
        )
        found.sure = found.sure or sure
        if of is a and found.inside is None:
            found.inside = a.first_inside(b)
        if not found.name and left:
            found.name = left[0][0]
            found.shown = (a.after[found.name][1], b.after[found.name][1])
        self._name(a, left, {place})
        return place

    def _name(self, a: LineRecord, left: Sequence[tuple[str, Pair]], roots: set[ProgramLine]) -> None:
        """Note where what came from a divergence has names, which a value has that is returned only later."""
        own = [name for name, _ in left if name != RETURNED]
        returns = len(own) < len(left)
        for root in roots if own else ():
            divergence = self.divergences[root]
            given = divergence.given if divergence.has_own_names else None
            if returns and given is None and root == a.place:
                # What it returns has a name where it was called; that it changes more may not matter.
                self._besides.setdefault(root, (a, own))
                continue
            if given is None and (divergence.given is None or a.thread == divergence.thread):
                divergence.names = []
            elif given is None:
                given = divergence.given
            if given is None or (given.kind, given.place) == (a.kind, a.place):
                divergence.given = a
                divergence.names += [name for name in own if name not in divergence.names]


def _is_choice(a: LineRecord, b: LineRecord, name: str) -> bool:
    """Return whether a statement left other whole numbers: times have parts of a second."""
    shown = a.after[name][1], b.after[name][1]
    return shown[0] != shown[1] and all(map(_WHOLE.fullmatch, shown))


def _read(a: LineRecord, b: LineRecord) -> list[tuple[str, Pair]]:
    """Return what differs of what a statement reads."""
    return [(name, (x, y)) for name, x in a.before.items() if (y := b.before.get(name, x)) != x]


def _left(a: LineRecord, b: LineRecord) -> list[tuple[str, Pair]]:
    """Return what differs of what a statement leaves."""
    both = [(name, (x[0], b.after[name][0])) for name, x in a.after.items() if name in b.after]
    return [(name, pair) for name, pair in both if pair[0] != pair[1]]
