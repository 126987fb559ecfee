"""Experiments with one statement of the program: it leaves in each run what it left in one.

If the program then repeats, and parts still without that, what this statement takes from outside is the
cause, whatever that is. So it finds causes of which no record and no list knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from . import known_causes
from .causes import Cause, Trial
from .experiments import Laboratory, Suspect
from .external_values import Candidate, is_drawn_name
from .first_lines import Entry
from .known_causes import Remedy, of_source
from .line_records import RETURNED

TRACE = {"REPROBUILD_TWICE_LINES": "trace"}
KEEP = {"REPROBUILD_TWICE_LINES": "keep"}
"""Settings of a run that traces lines, and of one that keeps what one of them leaves."""
_SELDOM = ("clock", "process", "name", "stamp")
"""Kinds of values from outside that most programs only print, or name something by."""
LINE = "line"
"""The kind of a candidate that is a statement at which a difference came in."""


class LineLaboratory(Laboratory, Protocol):
    """What runs the program for these experiments."""

    def lines_apart(self) -> list[Entry]:
        """Return the statements at which a difference came in, the likeliest first."""

    def kept(self, entry: Entry) -> Mapping[str, str] | None:
        """Return the variables that give a run what a statement left in another; None: it cannot be given."""


def statement_setting(entry: Entry) -> dict[str, str]:
    """Return the variable that says which statement it is, and the names of what it leaves."""
    given = entry.given
    if given is None:
        return {}
    words = (given.kind, str(given.place.line), given.place.file, *entry.names)
    return {"REPROBUILD_TWICE_LINE": "\t".join(words)}


def confirmed_line(cause: Cause | None, laboratory: LineLaboratory, most: int) -> Cause | None:
    """Return a cause with what experiments with single statements say; as it was where they say nothing.

    What none proves is a candidate, the likeliest first; what one refutes comes last.
    """
    known = cause.candidates if cause is not None else ()
    found = laboratory.lines_apart()
    found.sort(key=lambda each: any(_is_seldom(c) for c in _at(each, known)))
    trials, refuted, tried = list[Trial](), list[Entry](), 0
    for entry in found:
        if tried >= most:
            break
        variables = laboratory.kept(entry) if entry.given is not None and entry.names else None
        if variables is None:
            continue
        tried += 1
        settings = {"REPROBUILD_TWICE_LINES": "give", **statement_setting(entry), **variables}
        told = _listed(entry.names)
        remedy = _remedy(entry, known)
        suspect = Suspect(
            f"{told} as one run had {'them' if len(entry.names) > 1 else 'it'} after {entry.given_place}",
            (), (_candidate(entry, known),), remedy, variables=settings,
        )  # fmt: skip
        outcome = laboratory.repeats(suspect)
        if outcome is None:
            continue
        trials.append(Trial(suspect.what, outcome))
        if not outcome:
            refuted.append(entry)
        elif laboratory.parts_still():
            return _with(cause, suspect.candidates, trials, remedy)
        else:
            trials.append(Trial("nothing pinned", repeats=True))
            break
    left = [each for each in found if each not in refuted and each.sure]
    if cause is None and not left:
        return None
    more = tuple(_candidate(each, known) for each in left[:most])
    fresh = tuple(each for each in more if each not in known)
    return replace(_with(cause, (*fresh, *known), trials, None), proven=False)


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


def _at(entry: Entry, known: Sequence[Candidate]) -> list[Candidate]:
    """Return what is known already of the lines of a statement."""
    return [
        each
        for each in known
        if each.place.file == entry.place.file and entry.place.line <= each.place.line <= entry.end
    ]


def _is_seldom(candidate: Candidate) -> bool:
    return candidate.kind in _SELDOM or is_drawn_name(candidate)


def _candidate(entry: Entry, known: Sequence[Candidate]) -> Candidate:
    """Return what is known of the statement, or else the statement itself."""
    at = _at(entry, known)
    for each in at:
        if each.kind != "hint":
            return each
    named = "" if entry.name in ("", RETURNED) else f"`{entry.name}`"
    name = " from ".join(filter(None, (named, *(each.name for each in at[:1]))))
    return Candidate(LINE, name, entry.place, entry.shown, 0, -1)


def _remedy(entry: Entry, known: Sequence[Candidate]) -> Remedy:
    for each in _at(entry, known):
        found = known_causes.of_hint(each.name) if each.kind == "hint" else of_source(each.kind, each.name)
        if found is not None:
            return found
    return known_causes.LINE


def _listed(names: Sequence[str]) -> str:
    shown = [f"`{each}`" for each in names[:3]] + (["more"] if len(names) > 3 else [])
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
