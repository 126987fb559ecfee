"""Look for the cause of a difference: runs with a trace, then experiments. See docs/own-program.md."""

from __future__ import annotations

from contextlib import ExitStack, suppress

from ..errors import RepeatError
from . import first_difference
from .causes import Cause, find_cause
from .experiments import confirmed
from .first_difference import DATA
from .laboratory import ProgramLaboratory
from .line_experiments import confirmed_line, followed_back, proven_in_part
from .recorded_run import (
    Comparison,
    HowToRun,
    RecordedRun,
    Say,
    Scratch,
    between,
    recorder_settings,
    run_in,
)
from .suspects import LAUNCH
from .variations import VARIATIONS, of_variation

ATTEMPTS = 3
"""The most traced pairs of runs that look for a difference again; without it, it counts as seen once."""
WIDER = 10
"""Moments by which the window of the next trace is longer, where runs parted outside of it."""
EARLY = 30
"""Moments that are all traced; the trace of a later parting begins at that moment first."""


def search_cause(
    run: RecordedRun, how: HowToRun, found: Comparison, scratch: Scratch, say: Say
) -> tuple[Cause | None, int, bool]:
    """Return the cause, the number of traced pairs of runs, and whether one parted again.

    Raises as `runs.compare_runs`.
    """
    recurred, parting = False, found.parting
    at = parting.moment if parting is not None else -1
    data = parting is not None and parting.part in DATA
    first = 0 if data or at <= EARLY else at
    # Where all moments were equal it parts after the last one; a program without any is traced as a whole.
    ended = max((stream.recorded for one in found.runs for stream in one.streams), default=0)
    varied = VARIATIONS[found.varied][1] if found.varied else {}
    for attempt in range(1, ATTEMPTS + 1):
        window = f"{first}-{at}" if at >= 0 else f"{ended}-{ended}"
        say(f"the runs part: looking for the first operation, attempt {attempt} of {ATTEMPTS}")
        settings = {**recorder_settings(how), "REPROBUILD_TWICE_TRACE": window}
        if not any(one.streams for one in found.runs):
            settings[LAUNCH] = "1"  # a script that starts no Python is read by the one that starts it
        with ExitStack() as stack:
            runs = [
                run_in(run, {**settings, **more}, how, stack.enter_context(scratch()))
                for more in ({}, varied)
            ]
            again, ends, _ = between(runs[0], runs[1], faster=found.faster)
            if again is not None and first <= again.moment <= at:
                cause = find_cause(runs[0].streams, runs[1].streams, again)
            elif again is None and at < 0 and ends:
                cause = find_cause(runs[0].streams, runs[1].streams, parting)
            else:
                cause = None
            recurred = recurred or again is not None or bool(ends)
        if cause is not None and found.varied:
            return of_variation(cause, found.varied), attempt, True
        if cause is not None:
            with suppress(KeyboardInterrupt):
                if how.experiments:
                    bench = ProgramLaboratory(
                        run=run, how=how, found=found, scratch=scratch, say=say, attempts=attempt
                    )
                    known = cause.candidates
                    cause = confirmed(cause, bench, how.experiments)
                    proven = cause if cause.proven else None
                    if proven is None:
                        cause = confirmed_line(cause, bench, how.experiments)
                        proven = proven_in_part(cause, bench)
                    cause = followed_back(proven, bench, how.experiments, known) if proven else cause
            return cause, attempt, True
        if crashed := [each.status for each in runs if each.status not in {one.status for one in found.runs}]:
            raise RepeatError(f"it {first_difference.status_text(crashed[0])}")
        if again is not None:
            # Where it parts varies: the next window is wider.
            at = max(at, again.moment) + WIDER
            first = 0
    cause = None
    if recurred and how.experiments and not found.varied:
        bench = ProgramLaboratory(run=run, how=how, found=found, scratch=scratch, say=say, attempts=ATTEMPTS)
        with suppress(KeyboardInterrupt):
            cause = confirmed_line(None, bench, how.experiments)
            cause = proven_in_part(cause, bench) or cause
    return cause, ATTEMPTS, recurred
