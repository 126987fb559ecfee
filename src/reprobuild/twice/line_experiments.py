"""Experiments with one statement of the program: it leaves in each run what it left in one.

If the program then repeats, and parts still without that, what this statement takes from outside is the
cause, whatever that is. So it finds causes of which no record and no list knows.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Protocol

from . import known_causes
from .causes import Cause, Trial
from .experiments import DECIDES, Laboratory
from .external_values import Candidate, is_drawn_name, is_seed, is_unseeded
from .first_lines import Divergence, FollowedLines
from .known_causes import Remedy
from .line_records import RETURNED
from .records import ProgramLine
from .suspects import ADDRESSES, Suspect, of_values

TRACE = {"REPROBUILD_TWICE_LINES": "trace"}
KEEP = {"REPROBUILD_TWICE_LINES": "keep"}
"""Settings of a run that traces lines, and of one that keeps what one of them leaves."""
_SELDOM = ("clock", "process", "name", "stamp")
"""Kinds of values from outside that most programs only print, or name something by."""
_TIMES = ("clock", "timeout")
_GIVEN = ("clock", "process", "entropy", "name", "stamp", "machine", "address")
_OF_THREADS = (
    *(known_causes.THREADS, known_causes.FIRST, known_causes.TAKEN, known_causes.RACE),
    *(known_causes.SHARED_GENERATOR, known_causes.COUNTER),
)
DECISION = "decision"
"""The kind of a candidate that is a statement after which the runs went on in another way."""
PASSED = "passed"
"""Of one that is a time between two values of a clock, which goes into what is computed."""
_DIFFERENCE = re.compile(r"^\s*([\w.]+)\s*=\s*[\w.]+\s+-\s")
MAIN_THREAD = "MainThread"
"""Python's name of it: which of a library's threads gets which task is not the program's choice."""
MOST_BEHIND = 8
"""Statements that are looked at behind those that only name something."""
HANDED = "handed"
"""The kind of a candidate that is a statement whose object changes before another thread takes it."""
LINE = "line"
"""The kind of a candidate that is a statement at which a difference came in."""


class LineLaboratory(Laboratory, Protocol):
    """What runs the program for these experiments."""

    in_part: list[tuple[Suspect, Trial]]
    """Suspects with which what the runs part at first repeats, and something else does not."""

    def followed(
        self, harmless: frozenset[ProgramLine] = frozenset(), *, apart: bool = True
    ) -> FollowedLines:
        """Return what two runs with a trace of lines tell.

        What came from ``harmless`` statements counts as equal where another one reads it. Without ``apart``
        the runs may have ended alike, if no two parted.
        """

    def kept(self, divergence: Divergence) -> Mapping[str, str] | None:
        """Return the variables that give a run what a statement left in another; None: it cannot be given."""

    def first_parts_still(self) -> bool:
        """Return whether what the runs part at first differs in each of a few runs as the program is."""


def statement_setting(divergence: Divergence) -> dict[str, str]:
    """Return the variable that says which statement it is, and the names of what it leaves."""
    given = divergence.given
    if given is None:
        return {}
    words = (given.kind, str(given.place.line), given.place.file, *divergence.names)
    return {"REPROBUILD_TWICE_LINE": "\t".join(words)}


def confirmed_line(cause: Cause | None, laboratory: LineLaboratory, most: int) -> Cause | None:
    """Return a cause with what experiments with single statements say; as it was where they say nothing.

    What none proves is a candidate, the likeliest first; what one refutes is left out.
    """
    known = cause.candidates if cause is not None else ()
    found = laboratory.followed().divergences
    found.sort(key=lambda each: any(_is_seldom(c) for c in _at(each, known)))
    proven, trials = _try(cause, found, laboratory, most)
    if proven is not None:
        return proven
    proven = _by_addresses(cause, found, trials, laboratory)
    if proven is not None:
        return proven
    proven = _behind_names(cause, found, laboratory, trials)
    if proven is not None:
        return proven
    refuted = {
        divergence.place
        for divergence, trial in trials
        if divergence is not None and not trial.repeats and not trial.left
    }
    left = [each for each in found if each.place not in refuted and each.sure]
    if cause is None and not left:
        return None
    more = tuple(_candidate(each, known) for each in left[:most])
    fresh = tuple(each for each in more if each not in known)
    return replace(_with(cause, (*fresh, *known), [trial for _, trial in trials], None), proven=False)


def _behind_names(
    cause: Cause | None,
    found: Sequence[Divergence],
    laboratory: LineLaboratory,
    trials: list[tuple[Divergence | None, Trial]],
) -> Cause | None:
    """Return a statement behind those that name something by what is drawn or by a clock, as the cause, if an
    experiment proves it. Else None.

    What a library makes may have such a name in it, so that all which is computed from it differs.
    """
    known = cause.candidates if cause is not None else ()
    told = tuple(trial for _, trial in trials)
    cause = replace(cause, trials=(*cause.trials, *told)) if cause is not None else None
    named = {each.place: at for each in found if (at := _at(each, known)) and all(map(_is_seldom, at))}
    names = [each for at in named.values() for each in at]
    trial = laboratory.tried(of_values(names)) if names else None
    if trial is None or trial.repeats:
        return None  # they may be what matters
    harmless = set(named)
    for _ in range(MOST_BEHIND):
        behind = laboratory.followed(frozenset(harmless)).divergences
        left = [d for d in behind if d.sure and d.thread == MAIN_THREAD and d.place not in harmless]
        if not left:
            break
        first = min(left, key=attrgetter("at"))
        proven, more = _try(cause, [first], laboratory, 1)
        if proven is not None:
            is_line = proven.remedy is known_causes.LINE
            return replace(proven, remedy=known_causes.BEHIND) if is_line else proven
        trials += more
        harmless.add(first.place)
    return None


def _by_addresses(
    cause: Cause | None,
    found: Sequence[Divergence],
    trials: Sequence[tuple[Divergence | None, Trial]],
    laboratory: LineLaboratory,
) -> Cause | None:
    """Return a statement as the cause, if the program repeats with the same addresses in each run: then it
    takes objects in an order that they decide, as that of a set. Else None.

    What was tried is refuted as the only such statement, and what came late may come of an earlier one.
    """
    known = cause.candidates if cause is not None else ()
    tried = [each.place for each, _ in trials if each is not None]
    sure = [each for each in found if each.sure and not any(map(_is_seldom, _at(each, known)))]
    first = min(sure, key=lambda each: (each.late, each.place in tried), default=None)
    trial = laboratory.tried(ADDRESSES) if first is not None else None
    if first is None or trial is None or not trial.repeats or not laboratory.parts_still():
        return None
    told = [*(each for _, each in trials), trial]
    return _with(cause, (_candidate(first, known),), told, known_causes.SET)


def _try(
    cause: Cause | None, found: Sequence[Divergence], laboratory: LineLaboratory, most: int
) -> tuple[Cause | None, list[tuple[Divergence | None, Trial]]]:
    """Return the cause that an experiment with one of some statements proves, and the experiments."""
    known = cause.candidates if cause is not None else ()
    trials: list[tuple[Divergence | None, Trial]] = []
    tried = 0
    comes_later = False  # than a statement that surely is an origin and cannot be tried
    for divergence in found:
        if tried >= most:
            break
        variables = laboratory.kept(divergence) if divergence.given is not None and divergence.names else None
        if variables is None:
            comes_later = comes_later or (
                divergence.sure and not any(map(_is_seldom, _at(divergence, known)))
            )
            continue
        tried += 1
        settings = {"REPROBUILD_TWICE_LINES": "give", **statement_setting(divergence), **variables}
        told = _listed(divergence.names)
        it = "them" if len(divergence.names) > 1 else "it"
        what = f"{told} as one run had {it} after {divergence.given_place}"
        candidates, remedy = (_candidate(divergence, known),), _remedy(divergence, known)
        sure = not comes_later or (divergence.sure and not divergence.late)
        suspect = Suspect(what, (), candidates, remedy, variables=settings, sure=sure)
        trial = laboratory.tried(suspect)
        if trial is None:
            continue
        trials.append((divergence, trial))
        if not sure:
            continue
        if trial.repeats and laboratory.parts_still():
            return _with(cause, candidates, [each for _, each in trials], remedy), trials
        if trial.repeats:
            trials.append((None, Trial("nothing pinned", repeats=True)))
            break
    return None, trials


def proven_in_part(cause: Cause | None, laboratory: LineLaboratory) -> Cause | None:
    """Return the cause of what the runs part at first, where something else has another cause; else None."""
    found = [each for each in laboratory.in_part if each[0].candidates]
    if (cause is not None and cause.proven) or not found or not laboratory.first_parts_still():
        return None
    suspect, trial = min(found, key=lambda each: len(each[1].left))
    before = [each for each in cause.trials if each.what != trial.what] if cause is not None else []
    cause = replace(cause, trials=()) if cause is not None else None
    return _with(cause, suspect.candidates, [*before, trial], suspect.remedy)


def followed_back(
    cause: Cause, laboratory: LineLaboratory, most: int, known: Sequence[Candidate] = ()
) -> Cause:
    """Return a proven cause with what following the lines tells of it.

    Of a clock, the statement at which the time decides comes first. Of threads, those at which they draw from
    one generator are the cause, where there are any. A generator that was seeded with a value
    from elsewhere is no cause: that is where this value came in, and without proof of that nothing is proven.
    Of the ``known`` candidates one at its own line may be what gave it.
    """
    if not cause.proven or not cause.candidates:
        return cause
    if all(each.kind in _TIMES for each in cause.candidates):
        # By a seed all decides that is drawn.
        is_a_seed = any("seed" in each.place.text.lower() for each in cause.candidates)
        cause = cause if is_a_seed else _with_decision(cause, laboratory.followed(apart=False))
    elif all(map(is_drawn_name, cause.candidates)):
        cause = _with_sorted(cause, laboratory)
    elif cause.remedy in _OF_THREADS and all(each.kind == "hint" for each in cause.candidates):
        cause = _with_shared(cause, laboratory.followed().shared)
    seed = cause.candidates[0]
    if is_seed(seed) and not is_unseeded(seed) and not any(_gives(each, seed) for each in known):
        found = [each for each in laboratory.followed().divergences if _reaches(each, seed.place)]
        proven, trials = _try(cause, found, laboratory, most)
        if proven is not None or not found:
            return proven or cause
        refuted = {each.place for each, trial in trials if each is not None and not trial.repeats}
        more = [_candidate(each, cause.candidates) for each in found if each.place not in refuted]
        told = [trial for _, trial in trials]
        return replace(_with(cause, (*more[:most], *cause.candidates), told, None), proven=False)
    return cause


def _gives(candidate: Candidate, seed: Candidate) -> bool:
    """Return whether it gave a value from outside at the line that seeds with one."""
    here, there = ((each.place.file, each.place.line) for each in (candidate, seed))
    return here == there and candidate.kind in _GIVEN


def _with_shared(cause: Cause, shared: Sequence[tuple[ProgramLine, ProgramLine | None]]) -> Cause:
    if not shared:
        return cause
    name = known_causes.DRAWN_IN_TURN
    lines = tuple(Candidate("hint", name, place, ("", ""), 0, -1, made_for=by) for place, by in shared)
    # What was proven is that it is of threads: the other lines that may be it stay.
    return replace(cause, candidates=(*lines, *cause.candidates), remedy=known_causes.SHARED_GENERATOR)


def _with_sorted(cause: Cause, laboratory: LineLaboratory) -> Cause:
    """Return a cause by drawn names with the first statement that does not only hand them on."""
    found = laboratory.followed().divergences
    harmless = frozenset(each.place for each in found if _at(each, cause.candidates))
    behind = laboratory.followed(harmless).divergences if harmless else []
    left = [each for each in behind if each.sure and each.place not in harmless]
    if not left:
        return cause
    first = min(left, key=attrgetter("at"))
    drawn = cause.candidates[0]
    line = Candidate(DECISION, drawn.name, first.told_place, drawn.values, 0, -1)
    return replace(cause, candidates=(*cause.candidates, line))


def _reaches(divergence: Divergence, place: ProgramLine) -> bool:
    return (place.file, place.line) in {
        (each.file, each.line) for each in divergence.reached | divergence.perhaps
    }


def _with_decision(cause: Cause, followed: FollowedLines) -> Cause:
    """Return a cause by clocks with where the time decides, or goes into what is computed."""
    cause = replace(cause, candidates=_with_callers(cause.candidates, followed))
    passed = _duration(cause, followed.divergences)
    # Of a duration one end is enough to freeze, and its other end may be what the decision came from.
    for same in (attrgetter("file", "line"), attrgetter("file", "function")):
        for decision in followed.decisions:
            came_from = {same(each) for each in (decision.place, *decision.came_from)}
            clocks = tuple(each for each in cause.candidates if same(each.place) in came_from)
            at_clock = any(each.place.line == decision.place.line for each in clocks)
            if clocks and (at_clock or DECIDES.search(decision.place.text)):  # the others are only printed
                if passed is not None and not at_clock and not _reads(decision.place, passed):
                    continue  # it is of what the time goes into
                return _by_clock(cause, DECISION, decision.place, clocks)
    if passed is None:
        return cause
    return replace(_by_clock(cause, PASSED, passed, cause.candidates), remedy=known_causes.PASSED)


def _with_callers(clocks: Sequence[Candidate], followed: FollowedLines) -> tuple[Candidate, ...]:
    """Return clocks, each with the statement that calls its function for what that returns of them."""
    read = {(each.place.file, each.place.line) for each in clocks}
    places = {each.place for each in clocks}
    for each in followed.divergences:
        lines = {(each.place.file, line) for line in range(each.place.line, each.end + 1)}
        if read & (lines | {(place.file, place.line) for place in each.reached}):
            places |= {each.place, *each.reached}
    callers: dict[tuple[str, str], ProgramLine] = {}
    for place in sorted(places & followed.callers.keys(), key=attrgetter("line")):
        callers.setdefault((place.file, place.function), followed.callers[place])
    found = ((each, callers.get((each.place.file, each.place.function))) for each in clocks)
    return tuple(each if by is None else replace(each, made_for=by) for each, by in found)


def _by_clock(cause: Cause, kind: str, place: ProgramLine, clocks: tuple[Candidate, ...]) -> Cause:
    line = Candidate(kind, clocks[0].name, place, clocks[0].values, 0, -1)
    return replace(cause, candidates=(line, *clocks), place=place if cause.kind == "source" else cause.place)


def _duration(cause: Cause, divergences: Sequence[Divergence]) -> ProgramLine | None:
    """Return the statement that gives a name to the time between two clocks of its function, if any does."""
    clocks = {(each.place.file, each.place.function, each.place.line) for each in cause.candidates}
    if len(clocks) < 2:
        return None
    read: dict[ProgramLine, int] = defaultdict(int)
    for each in divergences:
        at = each.place.file, each.place.function
        if any((*at, line) in clocks for line in range(each.place.line, each.end + 1)):
            for place in each.reached:
                if (place.file, place.function) == at and (*at, place.line) not in clocks:
                    read[place] += _DIFFERENCE.search(place.text) is not None
    return min((each for each, times in read.items() if times > 1), key=attrgetter("line"), default=None)


def _reads(place: ProgramLine, passed: ProgramLine) -> bool:
    """Return whether a statement has the name of a time that has passed in it."""
    name = _DIFFERENCE.search(passed.text)
    return name is not None and re.search(rf"\b{re.escape(name[1])}\b", place.text) is not None


def _with(
    cause: Cause | None, candidates: tuple[Candidate, ...], trials: Sequence[Trial], remedy: Remedy | None
) -> Cause:
    if cause is not None:
        return replace(
            cause,
            candidates=candidates,
            proven=True,
            trials=(*cause.trials, *trials),
            remedy=remedy or cause.remedy,
        )
    return Cause(
        kind="source",
        operation="",
        place=candidates[0].place,
        module="",
        stream="",
        backward=False,
        thread="",
        shapes=(),
        ulp=None,
        deterministic=True,
        remedy=remedy or known_causes.OUTSIDE,
        candidates=candidates,
        told="no operation of torch was recorded that differed",
        trials=tuple(trials),
    )


def _at(divergence: Divergence, known: Sequence[Candidate]) -> list[Candidate]:
    """Return what is known already of the lines of a statement."""
    place, lines = divergence.place, range(divergence.place.line, divergence.end + 1)
    return [each for each in known if each.place.file == place.file and each.place.line in lines]


def _is_seldom(candidate: Candidate) -> bool:
    return candidate.kind in _SELDOM or is_drawn_name(candidate)


def _candidate(divergence: Divergence, known: Sequence[Candidate]) -> Candidate:
    """Return what is known of the statement, or else the statement itself."""
    at = _at(divergence, known)
    for each in at:
        if each.kind != "hint":
            return each
    named = "" if divergence.name in ("", RETURNED) else f"`{divergence.name}`"
    if divergence.handed is not None:
        there = divergence.told_place
        return Candidate(HANDED, named, there, divergence.shown, 0, -1, made_for=divergence.place)
    name = " from ".join(filter(None, (named, *(each.name for each in at[:1]))))
    return Candidate(LINE, name, divergence.told_place, divergence.shown, 0, -1)


def _remedy(divergence: Divergence, known: Sequence[Candidate]) -> Remedy:
    if divergence.handed is not None:
        return known_causes.HANDED
    found = (each.remedy for each in _at(divergence, known))
    return next(filter(None, found), known_causes.LINE)


def _listed(names: Sequence[str]) -> str:
    shown = [f"`{each}`" for each in names[:3]] + (["more"] if len(names) > 3 else [])
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
