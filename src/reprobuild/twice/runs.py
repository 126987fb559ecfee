"""Run a program several times under the recorder, and compare what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace

from ..errors import RepeatError
from . import first_difference
from .drift import Drift, drift
from .faster_clocks import BY_DIGITS, FasterRun
from .first_difference import EndDifference, Parting
from .recorded_run import (
    Comparison,
    HowToRun,
    ProgramRun,
    RecordedRun,
    Say,
    Scratch,
    between,
    ends_of,
    faster_runs,
    recorder_settings,
    run_in,
    run_once,
)
from .records import Stream
from .search import EARLY, search_cause
from .text_differences import TextDifference
from .variations import VARIATIONS

LONG = 600
"""Seconds of a run from which two more do not check what is known to be a time by its digits alone."""
MOST_CANDIDATES = 8
"""Number of possible causes that are reported."""


def compare_runs(
    run: RecordedRun,
    how: HowToRun,
    scratch: Scratch,
    say: Say,
    known: Callable[[Comparison], object] = lambda _: None,
) -> Comparison:
    """Run, compare, and where the runs part, look for the first operation that did.

    ``known`` is called as soon as the verdict is known, which the search for the cause does not change.
    Raises `RepeatError` where records cannot be read, and what ``run`` raises.
    """
    settings = recorder_settings(how)
    if how.together:
        say(f"{how.times} runs at once")
        with ThreadPoolExecutor(how.times) as pool:
            runs = list(pool.map(lambda _: run_once(run, settings, how, scratch), range(how.times)))
    else:
        runs = []
        for number in range(how.times):
            say(f"run {number + 1} of {how.times}")
            runs.append(run_once(run, settings, how, scratch))
    first, faster, stopped = _with_faster_clocks(run, how, runs, scratch, say)
    if stopped:
        how = replace(how, vary=(), cost=False, trace=False)
    varied = ""
    if how.vary and first.parting is None and not first.ends:
        varied, run_varied = _vary(run, how, runs[0], scratch, say, faster=faster)
        if run_varied is not None:
            runs.append(run_varied)
            first = replace(_first_other([runs[0], run_varied], faster), number=len(runs) - 1)
    ends = first.ends
    plain = None
    if how.cost:
        say("a run without the recorder, for its cost")
        plain = run_once(run, {**settings, "REPROBUILD_TWICE_TIMES": "1"}, how, scratch)
        if first.parting is None and not ends:
            ends = _without_recorder(runs[0], plain, faster)
    found = Comparison(
        runs=runs, other=first.number + 1, parting=first.parting, ends=ends, texts=first.texts,
        ignored=how.ignored, cause=None, traced=0, plain=plain,
        every=int(settings["REPROBUILD_TWICE_EVERY"]) if how.every.isdecimal() else 1,
        vary=how.vary, varied=varied, faster=faster, stopped=stopped,
    )  # fmt: skip
    known(found)
    if not how.trace or (first.parting is None and not ends):
        return found
    try:
        cause, traced, recurred = search_cause(run, how, found, scratch, say)
    except KeyboardInterrupt:
        return replace(found, stopped="it was interrupted")
    except RepeatError as error:
        return replace(found, stopped=error.message)
    shown = cause and replace(cause, candidates=cause.candidates[:MOST_CANDIDATES])
    return replace(found, cause=shown, traced=traced, recurred=recurred)


@dataclass(frozen=True, slots=True)
class _Other:
    """The first run that differs from run 0, and how; where all repeat, the first whose text does."""

    number: int
    """From 0; of the second run if all are equal."""
    parting: Parting | None
    ends: list[EndDifference]
    texts: list[TextDifference]
    doubted: bool
    """Whether some text of any run is known to be a time by its digits alone."""


def _first_other(runs: Sequence[ProgramRun], faster: Sequence[FasterRun] = ()) -> _Other:
    """Return the first run that differs from run 0. Results count before text."""
    other, texts, doubted = 1, list[TextDifference](), False
    for number in range(1, len(runs)):
        parting, ends, found = between(runs[0], runs[number], faster=faster)
        doubted = doubted or any(each.kind == BY_DIGITS for each in found)
        if parting is not None or ends:
            return _Other(number, parting, ends, found, doubted)
        if found and not texts:
            other, texts = number, found
    return _Other(other, None, [], texts, doubted)


def _with_faster_clocks(
    run: RecordedRun, how: HowToRun, runs: Sequence[ProgramRun], scratch: Scratch, say: Say
) -> tuple[_Other, Sequence[FasterRun], str]:
    """Return what differs, what runs with faster clocks wrote if they were needed, and why these stopped."""
    first = _first_other(runs)
    short = max(each.seconds for each in runs) <= LONG
    unsure = first.parting is None and (first.ends or (first.doubted and short))
    if not unsure or not how.experiments or how.together:
        return first, (), ""
    try:
        faster = faster_runs(run, how, runs, scratch, say)
    except KeyboardInterrupt:
        return first, (), "it was interrupted"
    return _first_other(runs, faster), faster, ""


def _vary(
    run: RecordedRun,
    how: HowToRun,
    first: ProgramRun,
    scratch: Scratch,
    say: Say,
    *,
    faster: Sequence[FasterRun],
) -> tuple[str, ProgramRun | None]:
    """Return the first thing that makes a difference where only that varies, and that run."""
    for name in how.vary:
        say(f"a run with another value of {VARIATIONS[name][0]}")
        found = run_once(run, {**recorder_settings(how), **VARIATIONS[name][1]}, how, scratch)
        parting, ends, _ = between(first, found, faster=faster)
        if parting is not None or ends:
            return name, found
    return "", None


def _without_recorder(one: ProgramRun, plain: ProgramRun, faster: Sequence[FasterRun]) -> list[EndDifference]:
    """Return what ends otherwise without the recorder, where it ended in one way with it."""
    return [
        replace(end, told=end.told.replace("run 2", "the run without the recorder"))
        for end in ends_of(one, plain, faster=faster)[0]
    ]


def measure_drift(runs: tuple[RecordedRun, RecordedRun], how: HowToRun, scratch: Scratch, say: Say) -> Drift:
    """Run with the old image twice, with the new one once, and compare operations up to moment `EARLY`.

    What differs between the first two has not moved: it does not repeat. Raises as `compare_runs`, and
    `RepeatError` where a run does nothing that could be compared.
    """
    settings = {**recorder_settings(how), "REPROBUILD_TWICE_TRACE": f"0-{EARLY}"}
    with ExitStack() as stack:
        found: list[Sequence[Stream]] = []
        for name, run in (("old", runs[0]), ("old", runs[0]), ("new", runs[1])):
            say(f"running with the {name} lock's image" + (", again" if len(found) == 1 else ""))
            one = run_in(run, settings, how, stack.enter_context(scratch()))
            if not any(stream.operations for stream in one.streams):
                raise RepeatError(
                    f"with the {name} lock's image the program did no operation of torch and"
                    f" {first_difference.status_text(one.status)}: {one.last or 'it said nothing'}"
                )
            found.append(one.streams)
        return drift(found[0], found[2], without=drift(found[0], found[1]).moved)
