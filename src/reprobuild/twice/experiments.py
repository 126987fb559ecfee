"""Experiments: two more runs with one suspect pinned and nothing else changed; if these repeat, it is proven.

Pure but for the runs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from . import known_causes
from .causes import Cause, Trial
from .external_values import Candidate, is_seed
from .suspects import (
    DRAWS,
    DUCKDB,
    EACH_DRAW,
    GENERATORS,
    SEEDED,
    Suspect,
    is_printed,
    is_seldom,
    of_clocks,
    of_draws,
    of_queries,
    suspects,
)

MOST_ALONE = 4
"""Clocks of several, or functions with some, that are each frozen alone."""

DECIDES = re.compile(r"\b(?:if|while|for|assert|min|max|int|round)\b|[<>]|//|%")
"""What a statement looks like at which a time decides: another one only hands it on."""


class Laboratory(Protocol):
    """What runs the program for an experiment."""

    def tried(self, suspect: Suspect) -> Trial | None:
        """Return whether the program repeats with a suspect pinned; None: that cannot be tried."""

    def ends_alike(self, one: Suspect, other: Suspect) -> bool:
        """Return whether the program gives the same with each of two suspects, with which it repeats."""

    def parts_still(self) -> bool:
        """Return whether the program as it is parts once more."""


def confirmed(cause: Cause, laboratory: Laboratory, most: int) -> Cause:
    """Return a cause with the results of experiments on some suspects at most.

    Of what one proves all else is left out. Where the program as it is repeats, too, nothing is proven. Of
    what was pinned in vain neither a reason nor a remedy is told.
    """
    trials: list[Trial] = []
    in_vain: list[Suspect] = []
    every = suspects(cause)
    beyond = [each for each in every[most:] if each.remedy is known_causes.SHARED_GENERATOR]
    for suspect in (*every[:most], *beyond[:1]):
        # One that is mostly only printed says nothing of what parts besides.
        only_printed = is_seldom(suspect) or is_printed(suspect)
        trial = laboratory.tried(replace(suspect, sure=False) if only_printed else suspect)
        if trial is None or not (trial.repeats or trial.left or suspect.faithful):
            continue
        trials.append(trial)
        if not trial.repeats:
            in_vain += [suspect] if suspect.faithful and suspect.pins else []
            continue
        if not laboratory.parts_still():
            trials.append(Trial("nothing pinned", repeats=True))
            break
        # Whatever else differed differed in these runs, too: it is none.
        fewest = _alone(suspect, laboratory, trials) or _fewest(suspect, laboratory, trials)
        if fewest is None:
            continue
        proven = fewest.candidates or cause.candidates
        remedy = cause.remedy if cause.kind == "operation" or fewest.remedy is None else fewest.remedy
        return replace(cause, candidates=proven, proven=True, remedy=remedy, trials=tuple(trials))
    both = _together(in_vain, laboratory, trials) if trials and not trials[-1].repeats else None
    if both is not None and laboratory.parts_still():
        return replace(
            cause,
            candidates=both.candidates,
            proven=True,
            remedy=both.remedy or cause.remedy,
            trials=tuple(trials),
        )
    return replace(cause, trials=tuple(trials), proven=cause.proven and not _doubted(cause, trials))


def _together(in_vain: Sequence[Suspect], laboratory: Laboratory, trials: list[Trial]) -> Suspect | None:
    """Return the fewest of some suspects with which the program repeats when all are pinned, as a seed may be
    made of a time and a process's number; None: it parts still. Each alone was pinned in vain.
    """
    found: Suspect | None = None
    left = sorted((one for suspect in in_vain for one in _each_clock(suspect)), key=is_seldom)
    for gone in (None, *left[::-1]):
        some = [each for each in left if each is not gone]
        if len(some) < 2:
            break
        suspect = Suspect(
            " and ".join(each.what for each in some),
            tuple(pin for each in some for pin in each.pins),
            tuple(candidate for each in some for candidate in each.candidates),
            some[0].remedy or known_causes.OUTSIDE,
        )
        trial = laboratory.tried(suspect)
        if trial is not None and trial.repeats:
            found, left = suspect, some
            trials.append(trial)
        elif gone is None:
            break
    return found


def _each_clock(suspect: Suspect) -> Sequence[Suspect]:
    """Return the clocks of a suspect one by one, where there are a few; else the suspect."""
    clocks = suspect.candidates
    few = 1 < len(clocks) <= MOST_ALONE and all(each.kind == "clock" for each in clocks)
    return [of_clocks([each]) for each in clocks] if few else [suspect]


def _fewest(suspect: Suspect, laboratory: Laboratory, trials: list[Trial]) -> Suspect | None:
    """Return the lines that have to be seeded of those that draw, or all where others draw, too.

    Where it is not enough that the generators are seeded at the start, threads share one. None: the suspect's
    lines are refuted.
    """
    if suspect.pins == (DUCKDB,):
        return _fewest_queries(suspect, laboratory, trials)
    each_time = EACH_DRAW in (kind for kind, *_ in suspect.pins)
    if suspect.pins != (DRAWS,) and not each_time:
        return suspect
    at_start = laboratory.tried(SEEDED) if not each_time else None
    if at_start is not None:
        trials.append(at_start)
    left = list(suspect.candidates)
    for gone in (*(() if each_time else (None,)), *suspect.candidates[::-1]):
        if gone is not None and len(left) < 2:
            break
        fewer = of_draws(tuple(each for each in left if each != gone), each_time=each_time)
        trial = laboratory.tried(fewer)
        if trial is not None:
            trials.append(trial)
        if trial is not None and trial.repeats:
            suspect, left = fewer, list(fewer.candidates)
        elif gone is None:
            break
    shared = at_start is not None and not at_start.repeats and all(map(_is_modules, left))
    of_one = left[0].remedy or known_causes.SOURCES["draw"]
    return replace(suspect, remedy=known_causes.SHARED_GENERATOR if shared else of_one)


def _fewest_queries(suspect: Suspect, laboratory: Laboratory, trials: list[Trial]) -> Suspect | None:
    """Return the queries of one line that have to be answered in one thread, or those of all known lines.

    None: it is others that have to be. Of several lines the last comes first: that an earlier one leaves its
    rows in no order is nothing by itself. Who asks may not be known, as of a relation's methods.
    """
    asked = list(dict.fromkeys(each.made_for for each in suspect.candidates if each.made_for is not None))
    choices = [(place,) for place in asked[:MOST_ALONE]]
    for places in (*choices, *([tuple(asked)] if len(asked) > 1 else [])):
        some = tuple(each for each in suspect.candidates if each.made_for in places)
        some = tuple(sorted(some, key=lambda each: each.made_for.line if each.made_for else 0)[::-1])
        trial = laboratory.tried(fewer := of_queries(places, some))
        if trial is not None:
            trials.append(trial)
        if trial is not None and trial.repeats:
            return fewer
    unknown = tuple(each for each in suspect.candidates if each.made_for is None)
    return replace(suspect, candidates=unknown) if unknown else None


def _is_modules(candidate: Candidate) -> bool:
    """Return whether it draws from a module's generator, which is seeded at the start, too."""
    return candidate.name.rpartition(".")[0] in GENERATORS and not is_seed(candidate)


def _alone(suspect: Suspect, laboratory: Laboratory, trials: list[Trial]) -> Suspect | None:
    """Return the one clock of several that is enough, where one is, or else those of one function.

    Of a duration both ends have to be frozen, and these mostly are in one function. One end alone makes it so
    long, or less than nothing, that the program may repeat by that: then it gives something else.
    """
    if suspect.remedy is not known_causes.SOURCES["clock"] or len(suspect.candidates) < 2:
        return None
    functions: dict[tuple[str, str], tuple[Candidate, ...]] = {}
    for clock in suspect.candidates:
        key = clock.place.file, clock.place.function
        functions[key] = (*functions.get(key, ()), clock)
    found = None
    if len(functions) > 1:
        found = _first_that_repeats(list(functions.values()), laboratory, trials)
    every = found if found is not None else suspect
    clocks = sorted(every.candidates, key=_only_begins)
    one = _first_that_repeats([(clock,) for clock in clocks], laboratory, trials) if len(clocks) > 1 else None
    if one is not None and len(clocks) > 1 and not laboratory.ends_alike(one, every):
        trials.pop()
        one = None
    return one or (of_clocks(clocks) if found is not None else None)


def _only_begins(clock: Candidate) -> bool:
    """Return whether its line computes nothing of the time, as the one at which a duration begins."""
    return " - " not in clock.place.text and not DECIDES.search(clock.place.text)


def _first_that_repeats(
    choices: Sequence[tuple[Candidate, ...]], laboratory: Laboratory, trials: list[Trial]
) -> Suspect | None:
    """Return the first of some choices of clocks that make the program repeat when they are frozen."""
    for clocks in choices[:MOST_ALONE]:
        one = of_clocks(clocks)
        trial = laboratory.tried(one)
        if trial is not None:
            trials.append(trial)
        if trial is not None and trial.repeats:
            return one
    return None


def _doubted(cause: Cause, trials: Sequence[Trial]) -> bool:
    """Whether the experiments contradict a cause that the trace only suggested."""
    computed = cause.kind in ("operation", "uninitialised", "race")
    # Threads that share a generator draw otherwise also where it is seeded.
    suspected = bool(cause.candidates) or cause.remedy is known_causes.RANDOM
    return bool(trials) and suspected and not computed
