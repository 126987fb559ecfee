"""The part of the report that says what the cause is, the line that is proven to be it first. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..selftest.distance import ENDLESS
from .causes import Cause, Trial
from .known_causes import OF_QUERIES, RANDOM
from .line_experiments import DECISION, HANDED, LINE, PASSED


def cause_rows(cause: Cause) -> Iterator[tuple[str, str]]:
    """Yield the cause, the line that is proven to be it first."""
    told, given = list(_operation_rows(cause)), list(_candidate_rows(cause))
    yield from (*given, *told) if cause.came_in else (*told, *given)
    proof = [each for each in cause.trials if each.repeats]
    proof = proof or [each for each in cause.trials if each.left][-1:]
    for trial in cause.trials:
        proven = cause.proven and trial in proof
        yield "experiment", f"with {trial.what}, {_outcome(trial, proven=proven)}"
    if not cause.proven and (cause.candidates or cause.kind == "race" or cause.remedy is RANDOM):
        return  # what may be it has neither
    yield "why", f"{cause.remedy.why} ({cause.remedy.source})"
    if cause.kind == "operation" and not cause.deterministic:
        yield "", "deterministic algorithms were turned off when it ran"
    yield "remedy", cause.remedy.remedy


def _operation_rows(cause: Cause) -> Iterator[tuple[str, str]]:
    where = f"{cause.place}" + (f": `{cause.place.text}`" if cause.place.text else "")
    if cause.made_at is not None:
        where += f", for {cause.made_at}: `{cause.made_at.text}`"
    if cause.kind == "source":
        several = not cause.proven and len(cause.candidates) > 1
        told = cause.told + ("; one of these may be the cause" if several else "")
        yield "" if cause.came_in else "from outside" if cause.proven else "not proven", told
    else:
        label = {
            "operation": "first operation",
            "uninitialised": "first operation",
            "random": "first draw",
            "race": "race of threads" if cause.proven else "may be a race",
            "outside": "value from outside",
            "flow": "other path",
        }[cause.kind]
        direction = " in the backward pass" if cause.backward else ""
        module = f" of `{cause.module}`" if cause.module else ""
        who = f" on {cause.stream}" if cause.stream else ""
        thread = f" in thread {cause.thread}" if cause.thread else ""
        yield label, f"{cause.operation}{direction}{module}{who}{thread}, {where}"
        yield "", cause.told + (f"; {ulp_text(cause.ulp)} at most" if cause.ulp is not None else "")


def _candidate_rows(cause: Cause) -> Iterator[tuple[str, str]]:
    for candidate in cause.candidates:
        there = f"at {candidate.place}: `{candidate.place.text}`"
        if candidate.made_for is not None and candidate.made_for != candidate.place:
            way = "asked at" if candidate.kind == "hint" and candidate.remedy in OF_QUERIES else "for"
            there += f", {way} {candidate.made_for}: `{candidate.made_for.text}`"
        if candidate.kind == "hint":
            yield "first line" if cause.proven else "may be", f"{candidate.name} {there}"
        elif candidate.kind == DECISION:
            yield "other path", f"the runs went on in another way {there}, by {candidate.name}"
        elif candidate.kind == PASSED:
            yield "time that passed", f"between two values of {candidate.name}, {there}"
        elif candidate.kind == HANDED:
            heading = "changes meanwhile" if cause.proven else "candidate"
            yield heading, f"{candidate.name} is another when another thread takes it, {there}"
        elif candidate.kind == LINE:
            values = f" was {candidate.values[0]} and {candidate.values[1]}" if any(candidate.values) else ""
            told = f"{candidate.name}{values}" if candidate.name else "the runs went on in another way"
            yield (
                "first line" if cause.proven else "candidate",
                f"{told} after {candidate.place}: `{candidate.place.text}`",
            )
        else:
            yield (
                "from outside" if cause.proven else "candidate",
                f"{candidate.name} gave {candidate.values[0]} and {candidate.values[1]} {there}",
            )


def _outcome(trial: Trial, *, proven: bool) -> str:
    """Say what came of an experiment."""
    told = ": this is proven" if proven else ", but nothing is proven" if trial.repeats else ""
    if not trial.repeats and not trial.left:
        return "it parts still"
    if trial.left:
        return f"the rest repeats; what differs still is {listed(list(trial.left))}{told}"
    if trial.equal[1]:
        return f"{trial.equal[0]} of {trial.equal[1]} runs are equal, as no two are without it{told}"
    return f"it repeats{told}"


def ulp_text(distance: int | None) -> str:
    """Return a distance for a reader."""
    if distance is None:
        return ""
    return "infinite (one is a number, the other NaN)" if distance >= ENDLESS else f"{distance} ULP"


def listed(words: list[str]) -> str:
    """Return some words, for a reader."""
    shown = words[:6] + (["more"] if len(words) > 6 else [])
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def cause_json(cause: Cause | None) -> dict[str, Any] | None:
    """Return the cause for JSON."""
    if cause is None:
        return None
    return {
        "kind": cause.kind,
        "operation": cause.operation,
        "file": cause.line.file,
        "line": cause.line.line,
        "text": cause.line.text,
        "operation_at": str(cause.place) if cause.operation else "",
        "made_at": str(cause.made_at or ""),
        "module": cause.module,
        "process": cause.stream,
        "backward": cause.backward,
        "ulp": cause.ulp,
        "told": cause.told,
        "proven": cause.proven,
        "experiments": [
            {"with": each.what, "repeats": each.repeats, "differs_still": list(each.left)}
            for each in cause.trials
        ],
        "why": cause.remedy.why if cause.proven else "",
        "remedy": cause.remedy.remedy if cause.proven else "",
        "source": cause.remedy.source if cause.proven else "",
        "from_outside": [
            {
                "name": c.name,
                "file": c.place.file,
                "line": c.place.line,
                "made_for": str(c.made_for or ""),
                "values": list(c.values),
            }
            for c in cause.candidates
        ],
    }
