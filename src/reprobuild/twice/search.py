"""Look for the cause of a difference: runs with a trace, then experiments. See docs/own-program.md."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from ..errors import RepeatError
from . import first_difference
from .causes import Cause, find_cause
from .experiments import Suspect, confirmed, of_variation
from .first_difference import DATA
from .first_lines import Divergence, FollowedLines, follow
from .line_experiments import KEEP, TRACE, confirmed_line, followed_back, statement_setting
from .line_records import LineStream, has_failed, kept_values, read_lines
from .recorded_run import (
    RECORDS,
    Comparison,
    HowToRun,
    ProgramRun,
    RecordedRun,
    Say,
    Scratch,
    between,
    patient,
    recorder_settings,
    run_in,
    run_once,
)
from .variations import VARIATIONS

QUICK = 20
"""Seconds of a run up to which an experiment takes one run more."""
ATTEMPTS = 3
"""The most traced pairs of runs that look for a difference again; without it, it counts as seen once."""
WIDER = 10
"""Moments by which the window of the next trace is longer, where runs parted outside of it."""
EARLY = 30
"""Moments that are all traced; the trace of a later parting begins at that moment first."""
LINE_ATTEMPTS = 3
"""Pairs of runs with a trace of lines."""


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
                    cause = confirmed(cause, bench, how.experiments)
                    cause = (
                        followed_back(cause, bench, how.experiments)
                        if cause.proven
                        else confirmed_line(cause, bench, how.experiments)
                    )
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
    return cause, ATTEMPTS, recurred


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramLaboratory:
    """Runs the program for experiments: with a suspect pinned, and as it is."""

    run: RecordedRun
    how: HowToRun
    found: Comparison
    scratch: Scratch
    say: Say
    attempts: int
    """Pairs of runs that the trace needed: what parts seldom is run more often with a suspect pinned."""

    def repeats(self, suspect: Suspect) -> bool | None:
        """Return whether the program repeats with a suspect pinned; None: so it does not end as it did."""
        self.say(f"an experiment: with {suspect.what}")
        slowest = max(each.seconds for each in self.found.runs)
        how = patient(self.how, self.found.runs)
        ended = {each.status for each in self.found.runs}
        first = None
        for _ in range((3 if slowest < QUICK else 2) + min(self.attempts, 3)):
            try:
                with self.scratch() as folder:
                    settings = {**recorder_settings(how), **suspect.settings}
                    one = run_in(self.run, settings, how, folder)
                    failed = has_failed(folder / RECORDS)
            except RepeatError:
                return None
            if one.status not in ended or failed:
                return None
            if first is not None and self._differ(first, one):
                return False
            first = first or one
        return True

    def parts_still(self) -> bool:
        """Return whether the program as it is parts from its first run again, in one of a few tries."""
        quick = max(each.seconds for each in self.found.runs) < QUICK
        for _ in range(5 if quick else 2):
            self.say("the experiments' control: a run as it is")
            one = run_once(self.run, recorder_settings(self.how), self.how, self.scratch)
            if self._differ(self.found.runs[0], one):
                return True
        return False

    def followed(self) -> FollowedLines:
        """Return what two runs with a trace of lines tell, which part."""
        for attempt in range(1, LINE_ATTEMPTS + 1):
            self.say(f"following the program's lines, attempt {attempt} of {LINE_ATTEMPTS}")
            try:
                pairs = [self._traced() for _ in range(2)]
            except RepeatError as error:
                self.say(f"warning: the program's lines are not followed: {error.message}")
                break
            (one, lines), (other, others) = pairs
            if {one.status, other.status} <= {each.status for each in self.found.runs} and self._differ(
                one, other
            ):
                return follow(lines, others)
        return FollowedLines([], [])

    def _traced(self) -> tuple[ProgramRun, list[LineStream]]:
        with self.scratch() as folder:
            settings = {**recorder_settings(self.how), **TRACE}
            return run_in(self.run, settings, patient(self.how, self.found.runs), folder), read_lines(
                folder / RECORDS
            )

    def kept(self, divergence: Divergence) -> Mapping[str, str] | None:
        """Return the variables that give a run what a statement left in another; None: it cannot be given."""
        with self.scratch() as folder:
            settings = {**recorder_settings(self.how), **KEEP, **statement_setting(divergence)}
            try:
                run_in(self.run, settings, patient(self.how, self.found.runs), folder)
                return None if has_failed(folder / RECORDS) else kept_values(folder / RECORDS)
            except RepeatError as error:
                self.say(f"warning: what a line leaves is not kept: {error.message}")
                return None

    def _differ(self, one: ProgramRun, other: ProgramRun) -> bool:
        parting, ends, _ = between(one, other, faster=self.found.faster)
        return parting is not None or bool(ends)
