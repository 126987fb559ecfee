"""Run a program several times under the recorder, and trace it where the runs differ."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from ..errors import RepeatError
from ..host import process
from . import first_difference
from .causes import Cause, find_cause
from .drift import Drift, drift
from .evidence import Evidence, read_evidence
from .experiments import Suspect, confirmed, of_variation
from .first_difference import DATA, EndDifference, Parting
from .ignored import Ignored
from .opened import SETTING as OPENED
from .opened import read_opened
from .records import Stream, read_records
from .text_differences import TextDifference, Texts
from .variations import VARIATIONS
from .written import WrittenFile, cached_files, without_mount_points, written_files

RECORDS = "records"
"""The folder below a run's own that the recorder writes into."""
PATIENCE = 5
"""How many times as long as the program an experiment may take."""
QUICK = 20
"""Seconds of a run up to which an experiment takes one run more."""
MOST_CANDIDATES = 8
"""Number of possible causes that are reported."""
ATTEMPTS = 3
"""The most traced pairs of runs that look for a difference again; without it, it counts as seen once."""
WIDER = 10
"""Moments by which the window of the next trace is longer, where runs parted outside of it."""
EARLY = 30
"""Moments that are all traced; the trace of a later parting begins at that moment first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RanProgram:
    """The results of a run that has ended."""

    status: int | None
    """Its exit status; None: it was stopped at the time limit."""
    stdout: bytes
    stderr: bytes
    written: Sequence[tuple[Path, str]]
    """The folders with what it wrote, and where each is in the container."""
    mount_points: Sequence[str] = ()


class RecordedRun(Protocol):
    """Runs the program once, from its start to its end, in a fresh place."""

    def __call__(self, folder: Path, settings: Mapping[str, str], seconds: float | None) -> RanProgram:
        """Run with the recorder's settings as variables; records land in `RECORDS` of an empty folder."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramRun:
    """One run, read and checked."""

    status: int | None
    stdout: tuple[str, ...]
    """Its lines; of more than `MOST_LINES`, a line with a hash in the place of the rest."""
    stderr: tuple[str, ...]
    files: Sequence[WrittenFile]
    streams: Sequence[Stream]
    seconds: float
    last: str
    """The last lines that it wrote on standard error, as they are."""
    evidence: Evidence = field(default_factory=Evidence)
    cached: Mapping[str, str] = field(default_factory=dict)
    """What it wrote into caches, which is not compared: digests by path."""
    opened: tuple[str, ...] = ()
    """The files that it opened for reading, where that was asked for."""
    opened_cut: bool = False
    """Whether it opened more than are kept."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HowToRun:
    """The user's options."""

    times: int = 2
    together: bool = False
    every: str = "step"
    seconds: float | None = None
    trace: bool = True
    experiments: int = 4
    """Suspects that are pinned to prove that one is the cause."""
    vary: tuple[str, ...] = ()
    """What one more run each varies, where the others repeat."""
    batch: str = ""
    """The dimension of the batch, or "auto": whether a row depends on it is tried, and nothing else."""
    cost: bool = False
    """Whether to run once more without the recorder, to see what it costs."""
    ignored: Ignored = field(default_factory=Ignored)
    receipt: bool = False
    """Whether to keep what a receipt says: which files are read, and the SHA-256 of those written."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """The result of a comparison."""

    runs: Sequence[ProgramRun]
    other: int
    """Number, from 1, of the run that differs from the first; the second run if all are equal."""
    parting: Parting | None
    ends: Sequence[EndDifference]
    cause: Cause | None
    traced: int
    """Pairs of runs with a trace that were made."""
    plain: ProgramRun | None
    """A run without the recorder, of which only the times of its steps and its end are known."""
    every: int
    """Of how many steps one was compared whole."""
    recurred: bool = False
    """Whether one of these pairs parted again."""
    texts: Sequence[TextDifference] = ()
    """What of the text differs, and is explained by a clock or a drawn name."""
    ignored: Ignored = field(default_factory=Ignored)
    vary: tuple[str, ...] = ()
    """What was to be varied, in this order, if all else repeats."""
    varied: str = ""
    """The variation of the run that differs; none after it was tried."""
    stopped: str = ""
    """Why the search for the cause was stopped; empty if it was not."""


MOST_LINES = 100_000

Scratch = Callable[[], AbstractContextManager[Path]]
Say = Callable[[str], None]


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
            runs = list(pool.map(lambda _: _one(run, settings, how, scratch), range(how.times)))
    else:
        runs = []
        for number in range(how.times):
            say(f"run {number + 1} of {how.times}")
            runs.append(_one(run, settings, how, scratch))
    other, parting, ends, texts = _first_other(runs)
    varied = ""
    if how.vary and parting is None and not ends:
        varied, run_varied = _vary(run, how, runs[0], scratch, say)
        if run_varied is not None:
            runs.append(run_varied)
            other, parting, ends, texts = _first_other([runs[0], run_varied])
            other = len(runs) - 1
    plain = None
    if how.cost:
        say("a run without the recorder, for its cost")
        plain = _one(run, {**settings, "REPROBUILD_TWICE_TIMES": "1"}, how, scratch)
        if parting is None and not ends:
            ends = _without_recorder(runs[0], plain)
    found = Comparison(
        runs=runs, other=other + 1, parting=parting, ends=ends, texts=texts, ignored=how.ignored, cause=None,
        traced=0, plain=plain, every=int(settings["REPROBUILD_TWICE_EVERY"]) if how.every.isdecimal() else 1,
        vary=how.vary, varied=varied,
    )  # fmt: skip
    known(found)
    if not how.trace or (parting is None and not ends):
        return found
    try:
        cause, traced, recurred = _trace(run, how, found, scratch, say)
    except KeyboardInterrupt:
        return replace(found, stopped="it was interrupted")
    except RepeatError as error:
        return replace(found, stopped=error.message)
    shown = cause and replace(cause, candidates=cause.candidates[:MOST_CANDIDATES])
    return replace(found, cause=shown, traced=traced, recurred=recurred)


def _bounded(lines: Sequence[str]) -> tuple[str, ...]:
    """Return lines to compare; those beyond the limit count as one, in which no time is recognized."""
    rest = lines[MOST_LINES:]
    if not rest:
        return tuple(lines)
    digest = hashlib.sha256("\n".join(rest).encode()).hexdigest()
    return (*lines[:MOST_LINES], f"{len(rest)} more lines, compared as a whole: SHA-256 {digest}")


def _first_other(
    runs: Sequence[ProgramRun],
) -> tuple[int, Parting | None, list[EndDifference], list[TextDifference]]:
    """Return the number, from 0, of the first run that differs from run 0, and the place.

    Results count before text: where all repeat, it is the first run whose text differs, else the second run.
    """
    other, texts = 1, list[TextDifference]()
    for number in range(1, len(runs)):
        parting, ends, found = between(runs[0], runs[number])
        if parting is not None or ends:
            return number, parting, ends, found
        if found and not texts:
            other, texts = number, found
    return other, None, [], texts


def _vary(
    run: RecordedRun, how: HowToRun, first: ProgramRun, scratch: Scratch, say: Say
) -> tuple[str, ProgramRun | None]:
    """Return the first thing that makes a difference where only that varies, and that run."""
    for name in how.vary:
        say(f"a run with another value of {VARIATIONS[name][0]}")
        found = _one(run, {**recorder_settings(how), **VARIATIONS[name][1]}, how, scratch)
        parting, ends, _ = between(first, found)
        if parting is not None or ends:
            return name, found
    return "", None


def _without_recorder(one: ProgramRun, plain: ProgramRun) -> list[EndDifference]:
    """Return what ends otherwise without the recorder, where it ended in one way with it."""
    return [
        replace(end, told=end.told.replace("run 2", "the run without the recorder"))
        for end in _ends(one, plain)[0]
    ]


def between(
    one: ProgramRun, other: ProgramRun
) -> tuple[Parting | None, list[EndDifference], list[TextDifference]]:
    """Return where two runs part, what differs at their ends, and what of their text only."""
    return first_difference.first_parting(one.streams, other.streams), *_ends(one, other)


def _ends(one: ProgramRun, other: ProgramRun) -> tuple[list[EndDifference], list[TextDifference]]:
    ends: list[EndDifference] = []
    explained: list[TextDifference] = []
    texts = Texts(one.evidence, other.evidence)
    if one.status != other.status:
        how = [first_difference.status_text(run.status) for run in (one, other)]
        told = f"run 1 {how[0]}, run 2 {how[1]}"
        ends.append(EndDifference(what="exit status", told=told))
    many = max(len(one.streams), len(other.streams)) > 1 or one.evidence.several or other.evidence.several
    alone = one.evidence.alone & other.evidence.alone
    for what, name, a, b in (
        ("standard output", "stdout", one.stdout, other.stdout),
        ("standard error", "stderr", one.stderr, other.stderr),
    ):
        found, same = first_difference.lines_apart(texts, a, b, what, many=many and name not in alone)
        ends += found
        explained += same
    found, same = first_difference.files_apart(texts, one.files, other.files)
    return ends + found, explained + same


def one_run(run: RecordedRun, how: HowToRun, scratch: Scratch) -> ProgramRun:
    """Run once and read the results. Raises as `compare_runs`."""
    return _one(run, recorder_settings(how), how, scratch)


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
            one = _read(run, settings, how, stack.enter_context(scratch()))
            if not any(stream.operations for stream in one.streams):
                raise RepeatError(
                    f"with the {name} lock's image the program did no operation of torch and"
                    f" {first_difference.status_text(one.status)}: {one.last or 'it said nothing'}"
                )
            found.append(one.streams)
        return drift(found[0], found[2], without=drift(found[0], found[1]).moved)


def recorder_settings(how: HowToRun) -> dict[str, str]:
    """Return the settings of a run's recorder, as variables."""
    opened = {OPENED: "1"} if how.receipt else {}
    if how.batch:
        return {"REPROBUILD_TWICE_BATCH": how.batch}
    return {"REPROBUILD_TWICE_EVERY": "1" if how.every == "step" else how.every, **opened}


def _one(run: RecordedRun, settings: Mapping[str, str], how: HowToRun, scratch: Scratch) -> ProgramRun:
    with scratch() as folder:
        return _read(run, settings, how, folder)


def _read(run: RecordedRun, settings: Mapping[str, str], how: HowToRun, folder: Path) -> ProgramRun:
    began, start = time.time(), time.monotonic()
    ran = run(folder, settings, how.seconds)
    return read_run(ran, how, folder, (began, time.monotonic() - start))


def read_run(ran: RanProgram, how: HowToRun, folder: Path, clock: tuple[float, float]) -> ProgramRun:
    """Read the output of a run from its folder; ``clock``: its start and its duration in seconds.

    Raises `RepeatError`.
    """
    began, seconds = clock
    evidence = read_evidence(folder / RECORDS, began, began + seconds)
    files: list[WrittenFile] = []
    cached: dict[str, str] = {}
    for place, destination in ran.written:
        found, whole = written_files(place, destination, evidence, how.ignored, sums=how.receipt)
        if not whole:
            raise RepeatError(
                f"the program wrote more than {len(found)} files into {destination}: too many to compare",
                hint="bind a folder for them with -v and remove them at its end, or write fewer",
            )
        files += found
        cached |= cached_files(place, destination)
    files = without_mount_points(files, ran.mount_points)
    read, cut = read_opened(folder / RECORDS) if how.receipt else ((), False)
    return ProgramRun(
        status=ran.status,
        stdout=_bounded(how.ignored.lines(ran.stdout)),
        stderr=_bounded(how.ignored.lines(ran.stderr)),
        files=files,
        cached=cached,
        streams=read_records(folder / RECORDS),
        evidence=evidence,
        opened=read,
        opened_cut=cut,
        seconds=seconds,
        last=process.tail(ran.stderr, 8)[-2000:],
    )


def _trace(
    run: RecordedRun, how: HowToRun, found: Comparison, scratch: Scratch, say: Say
) -> tuple[Cause | None, int, bool]:
    """Return the cause, the number of traced pairs of runs, and whether one parted again."""
    recurred, parting = False, found.parting
    at = parting.moment if parting is not None else -1
    data = parting is not None and parting.part in DATA
    first = 0 if data or at <= EARLY else at
    # Where all moments were equal it parts after the last one; a program without any is traced as a whole.
    ended = max((len(stream.moments) for one in found.runs for stream in one.streams), default=0)
    varied = VARIATIONS[found.varied][1] if found.varied else {}
    for attempt in range(1, ATTEMPTS + 1):
        window = f"{first}-{at}" if at >= 0 else f"{ended}-{ended}"
        say(f"the runs part: looking for the first operation, attempt {attempt} of {ATTEMPTS}")
        settings = {**recorder_settings(how), "REPROBUILD_TWICE_TRACE": window}
        with ExitStack() as stack:
            runs = [
                _read(run, {**settings, **more}, how, stack.enter_context(scratch())) for more in ({}, varied)
            ]
            again, ends, _ = between(runs[0], runs[1])
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
                    bench = _Laboratory(
                        run=run, how=how, found=found, scratch=scratch, say=say, attempts=attempt
                    )
                    cause = confirmed(cause, bench, how.experiments)
            return cause, attempt, True
        if crashed := [each.status for each in runs if each.status not in {one.status for one in found.runs}]:
            raise RepeatError(f"it {first_difference.status_text(crashed[0])}")
        if again is not None:
            # Where it parts varies: the next window is wider.
            at = max(at, again.moment) + WIDER
            first = 0
    return None, ATTEMPTS, recurred


@dataclass(frozen=True, kw_only=True, slots=True)
class _Laboratory:
    """Runs the program for `confirmed`: with a suspect pinned, and as it is."""

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
        longest = PATIENCE * slowest + 30
        how = replace(self.how, seconds=min(self.how.seconds or longest, longest))
        ended = {each.status for each in self.found.runs}
        first = None
        for _ in range((3 if slowest < QUICK else 2) + min(self.attempts, 3)):
            try:
                one = _one(self.run, {**recorder_settings(how), **suspect.settings}, how, self.scratch)
            except RepeatError:
                return None
            if one.status not in ended:
                return None
            if first is not None and _differ(first, one):
                return False
            first = first or one
        return True

    def parts_still(self) -> bool:
        """Return whether the program as it is parts from its first run again, in one of a few tries."""
        quick = max(each.seconds for each in self.found.runs) < QUICK
        for _ in range(5 if quick else 2):
            self.say("the experiments' control: a run as it is")
            one = _one(self.run, recorder_settings(self.how), self.how, self.scratch)
            if _differ(self.found.runs[0], one):
                return True
        return False


def _differ(one: ProgramRun, other: ProgramRun) -> bool:
    parting, ends, _ = between(one, other)
    return parting is not None or bool(ends)
