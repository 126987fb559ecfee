"""Runs the program for experiments, and tells whether what parted repeats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..errors import RepeatError
from .causes import Trial
from .faster_clocks import FasterRun
from .first_lines import Divergence, FollowedLines, follow
from .line_experiments import KEEP, TRACE, statement_setting
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
    faster_runs,
    patient,
    recorder_settings,
    run_in,
    run_once,
)
from .records import ProgramLine
from .suspects import Suspect

QUICK = 20
"""Seconds of a run up to which an experiment takes more runs."""
MOST_RUNS = 6
"""Of an experiment in which some runs are equal and others are not, and as many without what was pinned."""
ALIKE = 3
"""How many of these have to be equal."""
CONTROLS = 3
OF_LINES = 150
"""Seconds that a trace of lines may add to a run: its values take a process 60 of processor time at most."""
LINE_ATTEMPTS = 3
"""Pairs of runs with a trace of lines."""
STEPS = "the steps"


_Key = tuple[tuple[str, str], ...]


def _key(suspect: Suspect) -> _Key:
    return tuple(sorted(suspect.settings.items()))


@dataclass(kw_only=True, slots=True)
class ProgramLaboratory:
    """Runs the program for experiments: with a suspect pinned, and as it is."""

    run: RecordedRun
    how: HowToRun
    found: Comparison
    scratch: Scratch
    say: Say
    attempts: int
    """Pairs of runs that the trace needed: what parts seldom is run more often with a suspect pinned."""
    in_part: list[tuple[Suspect, Trial]] = field(default_factory=list)
    """Suspects with which what the runs part at first repeats, and something else does not."""
    _faster: Sequence[FasterRun] | None = None
    """What runs with faster clocks wrote; None: the verdict needed none, as the operations parted."""
    _controls: list[ProgramRun] = field(default_factory=list)
    _lines: tuple[list[LineStream], list[LineStream]] | None = None
    """What two runs with a trace of lines recorded."""
    _alike: tuple[list[LineStream], list[LineStream]] = field(default_factory=lambda: ([], []))
    """Likewise, of two that did not part."""
    _tried: dict[_Key, Trial | None] = field(default_factory=dict)
    _ended: dict[_Key, ProgramRun] = field(default_factory=dict)
    """A run of each experiment in which most were equal."""

    def tried(self, suspect: Suspect) -> Trial | None:
        """Return what comes of runs with a suspect pinned; None: it cannot be tried, as it ends otherwise.

        With the same settings as before it is not run again.
        """
        key = _key(suspect)
        if key not in self._tried:
            self._tried[key] = self._try(suspect)
        trial = self._tried[key]
        if trial is not None and trial.left and suspect.sure:
            self.in_part.append((suspect, trial))
        return trial

    def ends_alike(self, one: Suspect, other: Suspect) -> bool:
        """Return whether what the runs part at first is the same with each of two suspects pinned."""
        runs = [self._ended[key] for each in (one, other) if (key := _key(each)) in self._ended]
        return len(runs) > 1 and self._first not in self._places(runs[0], runs[1])

    def _try(self, suspect: Suspect) -> Trial | None:
        self.say(f"an experiment: with {suspect.what}")
        groups: list[list[ProgramRun]] = []
        left: set[str] = set()
        number = 0
        while number < ((3 if self._quick else 2) + min(self.attempts, 3) if len(groups) < 2 else MOST_RUNS):
            one = self._pinned(suspect)
            if one is None:
                return None
            number += 1
            apart = [self._places(group[0], one) for group in groups]
            like = next((at for at, places in enumerate(apart) if self._first not in places), None)
            if like is not None:
                left |= apart[like]
                groups[like].append(one)
            else:
                groups.append([one])
            # What is not the same in each run for certain may repeat in most runs.
            if len(groups) > 2 or (len(groups) > 1 and (suspect.faithful or not self._quick or left)):
                return Trial(suspect.what, repeats=False)
        most = max(map(len, groups))
        self._ended[_key(suspect)] = groups[0][0]
        if len(groups) > 1:
            alike = most >= ALIKE and self._no_two_are_equal()
            return Trial(suspect.what, repeats=alike, equal=(most, number) if alike else (0, 0))
        return Trial(suspect.what, repeats=not left, left=tuple(sorted(left)))

    @property
    def _quick(self) -> bool:
        return max(each.seconds for each in self.found.runs) < QUICK

    @property
    def _first(self) -> str:
        """What the runs part at first."""
        return STEPS if self.found.parting is not None else self.found.ends[0].where

    def _pinned(self, suspect: Suspect) -> ProgramRun | None:
        how = patient(self.how, self.found.runs)
        try:
            with self.scratch() as folder:
                one = run_in(self.run, {**recorder_settings(how), **suspect.settings}, how, folder)
                failed = has_failed(folder / RECORDS)
        except RepeatError:
            return None
        return None if failed or one.status not in {each.status for each in self.found.runs} else one

    def parts_still(self) -> bool:
        """Return whether the program as it is parts from its first run again, in one of a few tries."""
        # Runs after the experiment: what they do may have changed meanwhile.
        first = self.found.runs[0]
        return any(self._places(first, self._control()) for _ in range(5 if self._quick else 2))

    def first_parts_still(self) -> bool:
        """Return whether what the runs part at first differs in each of a few runs as the program is."""
        return all(self._first in self._places(self.found.runs[0], one) for one in self._as_it_is(CONTROLS))

    def _no_two_are_equal(self) -> bool:
        runs = [*self.found.runs, *self._as_it_is(MOST_RUNS - len(self.found.runs))]
        return all(self._places(a, b) for at, a in enumerate(runs) for b in runs[:at])

    def _as_it_is(self, count: int) -> Iterator[ProgramRun]:
        """Yield so many runs of the program as it is, each made as it is asked for first."""
        for number in range(count):
            yield self._controls[number] if number < len(self._controls) else self._control()

    def _control(self) -> ProgramRun:
        self.say("the experiments' control: a run as it is")
        one = run_once(self.run, recorder_settings(self.how), self.how, self.scratch)
        if len(self._controls) < MOST_RUNS:
            self._controls.append(one)
        return one

    def followed(
        self, harmless: frozenset[ProgramLine] = frozenset(), *, apart: bool = True
    ) -> FollowedLines:
        """Return what two runs with a trace of lines tell, which part; see `follow`.

        Without ``apart`` they may also have ended alike, where no two parted: then nothing decided otherwise.
        """
        if self._lines is None:
            self._lines = self._traced_apart()
        if apart or any(self._lines):
            return follow(*self._lines, harmless=harmless)
        return replace(follow(*self._alike, harmless=harmless), decisions=[])

    def _traced_apart(self) -> tuple[list[LineStream], list[LineStream]]:
        for attempt in range(1, LINE_ATTEMPTS + 1):
            self.say(f"following the program's lines, attempt {attempt} of {LINE_ATTEMPTS}")
            try:
                pairs = [self._traced() for _ in range(2)]
            except RepeatError as error:
                self.say(f"warning: the program's lines are not followed: {error.message}")
                break
            (one, lines), (other, others) = pairs
            if {one.status, other.status} <= {each.status for each in self.found.runs} and self._places(
                one, other
            ):
                return lines, others
            self._alike = lines, others
        return [], []

    def _traced(self) -> tuple[ProgramRun, list[LineStream]]:
        with self.scratch() as folder:
            settings = {**recorder_settings(self.how), **TRACE}
            how = patient(self.how, self.found.runs, more=OF_LINES)
            return run_in(self.run, settings, how, folder), read_lines(folder / RECORDS)

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

    def _places(self, one: ProgramRun, other: ProgramRun) -> frozenset[str]:
        """Return what differs between two runs: the steps, streams and files."""
        known = self._faster or self.found.faster
        parting, ends, _ = between(one, other, faster=known)
        if parting is None and ends and not known and self._faster is None:
            self._faster = faster_runs(self.run, self.how, self.found.runs, self.scratch, self.say)
            parting, ends, _ = between(one, other, faster=self._faster)
        return frozenset((*(each.where for each in ends), *((STEPS,) if parting is not None else ())))
