"""One recorded run of a program, and what a comparison of runs found."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from ..errors import RepeatError
from ..host import process
from . import first_difference
from .causes import Cause
from .evidence import Evidence, read_evidence
from .faster_clocks import PACES, FasterRun
from .file_values import value_lines
from .first_difference import EndDifference, Parting
from .ignored import Ignored
from .opened import SETTING as OPENED
from .opened import read_opened
from .records import Stream, processes, read_records
from .suspects import LAUNCH
from .text_differences import TextDifference, Texts
from .written import WrittenFile, cached_files, without_mount_points, written_files

RECORDS = "records"
"""The folder below a run's own that the recorder writes into."""
Scratch = Callable[[], AbstractContextManager[Path]]
Say = Callable[[str], None]
MOST_LINES = 100_000
PATIENCE = 5
"""How many times as long as the program an experiment may take."""
PACE = "REPROBUILD_TWICE_PACE"
"""The setting of a run with faster clocks."""
_STREAMS = ("standard output", "standard error")


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
    faster: Sequence[FasterRun] = ()
    """What it wrote with faster clocks, where some of its text was not explained by records."""
    stopped: str = ""
    """Why the search for the cause was stopped; empty if it was not."""


def _bounded(lines: Sequence[str]) -> tuple[str, ...]:
    """Return lines to compare; those beyond the limit count as one, in which no time is recognized."""
    rest = lines[MOST_LINES:]
    if not rest:
        return tuple(lines)
    digest = hashlib.sha256("\n".join(rest).encode()).hexdigest()
    return (*lines[:MOST_LINES], f"{len(rest)} more lines, compared as a whole: SHA-256 {digest}")


def between(
    one: ProgramRun, other: ProgramRun, *, faster: Sequence[FasterRun] = ()
) -> tuple[Parting | None, list[EndDifference], list[TextDifference]]:
    """Return where two runs part, what differs at their ends, and what of their text only.

    ``faster``: what the program wrote with faster clocks.
    """
    return first_difference.first_parting(one.streams, other.streams), *ends_of(one, other, faster=faster)


def ends_of(
    one: ProgramRun, other: ProgramRun, *, faster: Sequence[FasterRun] = ()
) -> tuple[list[EndDifference], list[TextDifference]]:
    """Return what differs at the ends of two runs, and what of their text only."""
    ends: list[EndDifference] = []
    explained: list[TextDifference] = []
    texts = Texts(one.evidence, other.evidence, faster=faster)
    if one.status != other.status:
        how = [first_difference.status_text(run.status) for run in (one, other)]
        told = f"run 1 {how[0]}, run 2 {how[1]}"
        ends.append(EndDifference(what="exit status", told=told))
    many = (
        max(processes(one.streams), processes(other.streams)) > 1
        or one.evidence.several
        or other.evidence.several
    )
    alone = one.evidence.alone & other.evidence.alone
    for what, name, a, b in (
        (_STREAMS[0], "stdout", one.stdout, other.stdout),
        (_STREAMS[1], "stderr", one.stderr, other.stderr),
    ):
        found, same = first_difference.lines_apart(texts, a, b, what, many=many and name not in alone)
        ends += found
        explained += same
    found, same = first_difference.files_apart(texts, one.files, other.files)
    return ends + found, explained + same


def patient(how: HowToRun, runs: Sequence[ProgramRun], *, more: int = 30) -> HowToRun:
    """Return the options of a run that may take longer than these did, and some seconds more."""
    longest = PATIENCE * max(each.seconds for each in runs) + more
    return replace(how, seconds=min(how.seconds or longest, longest))


def faster_runs(
    run: RecordedRun, how: HowToRun, runs: Sequence[ProgramRun], scratch: Scratch, say: Say
) -> list[FasterRun]:
    """Return what it writes with faster clocks; nothing where it then ends in another way than these runs."""
    found = []
    for times in PACES:
        say(f"a run with clocks {times} times as fast, which shows what is a time")
        settings = {**recorder_settings(how), PACE: f"{times}", LAUNCH: "1"}
        try:
            one = run_once(run, settings, patient(how, runs), scratch)
        except RepeatError as error:
            say(f"warning: faster clocks tell nothing: {error.message}")
            return []
        if one.status != runs[0].status:
            say(f"warning: faster clocks tell nothing: it then {first_difference.status_text(one.status)}")
            return []
        found.append(_faster(one, times))
    return found


def _faster(run: ProgramRun, times: int) -> FasterRun:
    texts = dict(zip(_STREAMS, (run.stdout, run.stderr), strict=True))
    for file in run.files:
        lines = file.lines if file.lines is not None else value_lines(file.content, run.evidence)
        if lines is not None:
            texts[f"file {file.path}"] = lines
    return FasterRun(times, texts, run.evidence)


def one_run(run: RecordedRun, how: HowToRun, scratch: Scratch) -> ProgramRun:
    """Run once and read the results. Raises as `compare_runs`."""
    return run_once(run, recorder_settings(how), how, scratch)


def recorder_settings(how: HowToRun) -> dict[str, str]:
    """Return the settings of a run's recorder, as variables."""
    opened = {OPENED: "1"} if how.receipt else {}
    if how.batch:
        return {"REPROBUILD_TWICE_BATCH": how.batch}
    return {"REPROBUILD_TWICE_EVERY": "1" if how.every == "step" else how.every, **opened}


def run_once(run: RecordedRun, settings: Mapping[str, str], how: HowToRun, scratch: Scratch) -> ProgramRun:
    """Run once with some settings of the recorder and read the results. Raises as `compare_runs`."""
    with scratch() as folder:
        return run_in(run, settings, how, folder)


def run_in(run: RecordedRun, settings: Mapping[str, str], how: HowToRun, folder: Path) -> ProgramRun:
    """Run as `run_once` does, in a folder that stays. Raises as it does."""
    began, start = time.time(), time.monotonic()
    ran = run(folder, settings, how.seconds)
    faster = int(settings.get(PACE, 1))
    return read_run(ran, how, folder, (began, time.monotonic() - start), faster=faster)


def read_run(
    ran: RanProgram, how: HowToRun, folder: Path, clock: tuple[float, float], *, faster: int = 1
) -> ProgramRun:
    """Read the output of a run from its folder; ``clock``: its start and its duration in seconds.

    ``faster``: how many times as fast its own clocks ran. Raises `RepeatError`.
    """
    began, seconds = clock
    evidence = read_evidence(folder / RECORDS, began, began + seconds * faster)
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
