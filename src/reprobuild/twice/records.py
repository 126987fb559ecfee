"""Read the recorder's output. Untrusted: bounded, and parsed strictly.

The format is that of ``in_image/twice``: a file a process, a record a line. A record that is not as it
should be is a `RepeatError`; nothing of a record is ever executed or unpickled.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any

from ..errors import RepeatError
from ..host.home import open_regular
from . import evidence_limits as limits
from . import record_fields as fields

MOST_FILES = 512
MOST_BYTES = 4 << 30
"""Of all files of a run together."""
MOST_RECORDS = 4_000_000
"""Of all files of a run together; a trace of 1,000 steps of a large model has a tenth."""
MOST_SECONDS = 600.0
"""Time limit to read a run."""
_MOST_THREADS = 100_000
"""Optimizers that step in threads, in one process."""
_MOST_GROUPS = 4096
"""Of tensors with names, in one process."""
FORMAT = 1


@dataclass(frozen=True, slots=True)
class MomentPart:
    """One result of a step."""

    name: str
    digest: str
    detail: bytes
    """Eight bytes for each tensor of a group, or for each item of a batch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Moment:
    """What was recorded at once: a step of an optimizer, the state before its first, or a model's call."""

    kind: str
    label: str
    number: int
    """Of the records of its process, from 0."""
    parts: tuple[MomentPart, ...]
    names: Mapping[str, tuple[str, ...]]
    """The names of a group's tensors, by the group's name."""
    losses: tuple[float, ...]
    sample: tuple[float, ...]
    wall: float
    """Seconds since the previous moment."""
    spent: float
    """Seconds of those that the recorder took."""


@dataclass(frozen=True, slots=True)
class ProgramLine:
    """A line of the user's program."""

    file: str
    line: int
    function: str
    text: str

    def __str__(self) -> str:
        """Return its place in the form of compilers, FILE:LINE."""
        return f"{self.file}:{self.line}" if self.file else "a place outside of the program"


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """One operation of torch in a trace."""

    name: str
    inputs: tuple[tuple[str, int], ...]
    """The digest of each, and the number of the operation that made it; -1: none, -2: a random generator."""
    plain: str
    """Digest of the arguments other than tensors."""
    outputs: tuple[str, ...]
    kept: tuple[int, ...]
    """Where the values of each output are in the file of values; -1: not kept."""
    shapes: tuple[str, ...]
    place: ProgramLine
    module: str
    backward: bool
    deterministic: bool
    thread: str
    empty: bool
    """Whether it gives memory as it is, which may hold anything."""
    moment: int
    sources: int
    """How many records of sources came before it."""
    handed: tuple[int, ...] = ()
    """Which of the inputs another thread had made and then handed over, as by a queue or a future."""
    made_at: ProgramLine | None = None
    """Of one that a constructor does, the line that made the object first, where that is known."""


@dataclass(frozen=True, slots=True)
class Source:
    """A value that the program took from outside of its own computation."""

    kind: str
    name: str
    value: str
    shown: str
    place: ProgramLine
    made_for: ProgramLine | None = None
    """The line that gave None to the function which takes this value as a default, or that made what drew."""


@dataclass(kw_only=True, slots=True)
class Stream:
    """What one process recorded, in its order."""

    rank: str
    worker: str
    process: str
    argv: tuple[str, ...]
    values: Path
    torch: Mapping[str, str] = field(default_factory=dict)
    moments: list[Moment] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    hints: list[tuple[str, ProgramLine, ProgramLine | None]] = field(default_factory=list)
    """Lines that may give another order or value in each run, by what they walk through or ask for; of a
    query also the line that asks it.
    """
    batches: list[Mapping[str, Any]] = field(default_factory=list)
    """Models whose rows were tried, as they were recorded."""
    calls: int = 0
    cut: bool = False
    """Whether there was more than the recorder writes."""
    hooks: bool | None = None
    """Whether the recorder's hooks were in place at the end; None: it did not get there."""
    recorded: int = 0
    """The number of its moments, with those of its threads."""
    threads: dict[int, Stream] = field(default_factory=dict)
    """What each optimizer did that steps in a thread, by its number: in no order with the others."""
    is_thread: bool = False
    """Whether it is one of these."""

    @property
    def label(self) -> str:
        """Name the process for a reader; empty for the only one of a program."""
        words = [f"rank {self.rank}"] if self.rank else []
        words += [f"data worker {self.worker}"] if self.worker else []
        if not words and self.process != "MainProcess":
            words.append(self.process)
        words += ["a thread"] if self.is_thread else []
        return ", ".join(words)

    @property
    def key(self) -> tuple[str, ...]:
        """What it has in common with the same process of another run."""
        return (self.rank, self.worker, self.process, "thread" * self.is_thread, *self.argv[:1])


def processes(streams: Sequence[Stream]) -> int:
    """Return the number of processes of a run."""
    return sum(not stream.is_thread for stream in streams)


_KEYS: Mapping[str, frozenset[str]] = {
    "process": frozenset(("k", "format", "rank", "worker", "name", "argv")),
    "torch": frozenset(("k", "torch", "python", "threads", "cpu", "deterministic")),
    "gpus": frozenset(("k", "GPU", "driver", "cuDNN")),
    "rank": frozenset(("k", "rank")),
    "names": frozenset(("k", "group", "names")),
    "start": frozenset(("k", "optimizer", "which", "parts", "loss", "sample", "wall", "spent")),
    "step": frozenset(("k", "n", "optimizer", "which", "parts", "loss", "sample", "wall", "spent")),
    "call": frozenset(("k", "of", "parts", "loss", "sample", "wall", "spent")),
    "place": frozenset(("k", "n", "at", "for")),
    "op": frozenset(
        (
            *("k", "op", "in", "plain", "place", "module", "back", "flag", "thread", "n", "out", "kept"),
            *("shapes", "empty", "handed"),
        )
    ),
    "source": frozenset(("k", "kind", "name", "value", "shown", "place", "for")),
    "hint": frozenset(("k", "what", "place", "for")),
    "batch": frozenset(
        (
            *("k", "n", "model", "called", "verdict", "rows", "arguments", "ways", "operation", "notes"),
            "reason",
        )
    ),
    "end": frozenset(("k", "hooks")),
    "traced": frozenset(("k",)),
    "full": frozenset(("k",)),
}


def read_records(folder: Path) -> list[Stream]:
    """Return what the processes of a run recorded, in the order of their first records. Raises
    `RepeatError`.
    """
    with os.scandir(folder) as entries:  # of which a program may make millions
        names = (entry.name for entry in entries if entry.name.endswith(".jsonl"))
        paths = sorted(folder / name for name in islice(names, MOST_FILES + 1))
    if len(paths) > MOST_FILES:
        raise RepeatError(
            f"the program recorded in more than {MOST_FILES} processes, the most that can be compared"
        )
    left = MOST_BYTES
    limit = _Limit(time.monotonic() + MOST_SECONDS)
    streams = []
    for path in paths:
        limit.line = 0
        try:
            with _opened(path) as file:
                streams.append(_stream(_lines(file, left, limit), path.with_suffix(".values")))
                left -= file.tell()
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            said = f"{type(error).__name__} {error}" if isinstance(error, KeyError | TypeError) else error
            place = f"{path.name}: line {limit.line}" if limit.line else path.name
            raise RepeatError(
                f"the records of a run cannot be read: {place}: {said}",
                hint="a program that writes into /run/reprobuild/records itself cannot be compared",
            ) from None
    return [each for one in streams if one is not None for each in (one, *one.threads.values())]


def _opened(path: Path) -> IO[bytes]:
    if path.is_symlink():  # it could lead out of the folder
        raise ValueError("it is a link")
    return open_regular(path)


@dataclass(slots=True)
class _Limit:
    """What all files of a run share."""

    end: float
    """By time.monotonic()."""
    records: int = 0
    line: int = 0
    """Of the file that is read."""

    def count(self) -> None:
        """Count a record. Raises ValueError beyond a limit."""
        self.records += 1
        self.line += 1
        if self.records > MOST_RECORDS:
            raise ValueError(f"a run has more than {MOST_RECORDS:,} records")
        if self.records % 1024 == 0 and time.monotonic() > self.end:
            raise ValueError(f"a run's records were not read within {MOST_SECONDS:g} s")


def _lines(file: Any, left: int, limit: _Limit) -> Iterator[dict[str, Any]]:
    while line := file.readline(fields.LONGEST):
        left -= len(line)
        limit.count()
        if not line.endswith(b"\n"):
            if len(line) == fields.LONGEST:
                raise ValueError("a line is too long")
            return  # the process was killed while it wrote its last
        if left < 0:
            raise ValueError(f"a run's records are larger than {MOST_BYTES >> 30} GiB")
        record = limits.load_values(line)
        if not isinstance(record, dict) or record.keys() != _KEYS.get(record.get("k", ""), ()):
            raise ValueError("a record has other keys than it should")
        yield record


def _stream(records: Iterator[dict[str, Any]], values: Path) -> Stream | None:
    first = next(records, None)
    if first is None:
        return None
    if first["k"] != "process" or first["format"] != FORMAT:
        raise ValueError("the first record is not that of a process")
    stream = Stream(
        rank=fields.text(first["rank"], 20),
        worker=fields.text(first["worker"], 20),
        process=fields.text(first["name"]),
        argv=tuple(fields.text(word) for word in fields.items(first["argv"], 20)),
        values=values,
    )
    names: dict[str, tuple[str, ...]] = {}
    places: dict[int, tuple[ProgramLine, ProgramLine | None]] = {}
    for record in records:
        match record["k"]:
            case "torch" | "gpus":
                facts = {key: fields.text(str(value), 300) for key, value in record.items() if key != "k"}
                stream.torch = {**stream.torch, **facts}
            case "rank" if not stream.rank:
                stream.rank = fields.text(record["rank"], 20)
            case "names":
                group = tuple(fields.text(name, 300) for name in fields.items(record["names"], 1 << 20))
                names = _with(names, fields.text(record["group"]), group)
            case "start" | "step" | "call":
                _of_thread(record, stream).moments.append(_moment(record, names, stream))
                stream.recorded += 1
            case "place" | "op" | "source" | "hint" | "batch":
                _traced(record, places, stream)
            case "end":
                stream.hooks = fields.truth(record["hooks"])
            case "full":
                stream.cut = True
            case "traced":
                pass
            case _:
                raise ValueError("a process is described more than once")
    return stream


def _of_thread(record: Mapping[str, Any], stream: Stream) -> Stream:
    """Return where a moment belongs: to the process, or to one of the optimizers in its threads."""
    which = 0 if record["k"] == "call" else fields.whole(record["which"])
    if which >= 0:
        return stream
    if which not in stream.threads:
        if len(stream.threads) >= _MOST_THREADS:
            raise ValueError(f"it has more than {_MOST_THREADS:,} optimizers in threads")
        stream.threads[which] = replace(
            stream, moments=[], operations=[], sources=[], hints=[], batches=[], threads={}, is_thread=True
        )
    return stream.threads[which]


def _with(
    names: Mapping[str, tuple[str, ...]], group: str, tensors: tuple[str, ...]
) -> dict[str, tuple[str, ...]]:
    """Return names with those of a group more; the moments before keep theirs."""
    if len(names) >= _MOST_GROUPS:
        raise ValueError(f"it has more than {_MOST_GROUPS:,} groups of tensors")
    return {**names, group: tensors}


def _traced(
    record: Mapping[str, Any], places: dict[int, tuple[ProgramLine, ProgramLine | None]], stream: Stream
) -> None:
    match record["k"]:
        case "place":
            made = _place(record["for"])
            places[fields.whole(record["n"])] = (_place(record["at"]), made if made.file else None)
        case "op":
            stream.operations.append(_operation(record, places, stream))
        case "batch":
            stream.batches.append(record)
        case "hint":
            asked_by = _place(record["for"])
            told = fields.text(record["what"]), _place(record["place"])
            stream.hints.append((*told, asked_by if asked_by.file else None))
        case _:
            texts = (
                fields.text(record["kind"]),
                fields.text(record["name"]),
                fields.digest(record["value"]),
                fields.text(record["shown"]),
            )
            gave = _place(record["for"])
            stream.sources.append(Source(*texts, _place(record["place"]), gave if gave.file else None))


def _moment(record: Mapping[str, Any], names: Mapping[str, tuple[str, ...]], stream: Stream) -> Moment:
    kind = record["k"]
    if kind == "call":
        stream.calls += 1
        label = f"call {stream.calls - 1} of {fields.text(record['of'])}"
    else:
        which = fields.whole(record["which"])
        optimizer = fields.text(record["optimizer"]) + (f", optimizer {which + 1}" if which > 0 else "")
        label = (
            f"step {fields.whole(record['n'])} ({optimizer})"
            if kind == "step"
            else f"the first step of {optimizer}"
        )
    return Moment(
        kind=kind,
        label=label,
        number=stream.recorded,
        parts=tuple(_part(part) for part in fields.items(record["parts"], 4096)),
        names=names,
        losses=fields.floats(record["loss"]),
        sample=fields.floats(record["sample"]),
        wall=fields.seconds(record["wall"]),
        spent=fields.seconds(record["spent"]),
    )


def _part(value: Any) -> MomentPart:
    name, digest, detail = fields.items(value, 3)
    return MomentPart(fields.text(name, 400), fields.digest(digest), fields.binary(detail))


def _operation(
    record: Mapping[str, Any],
    places: Mapping[int, tuple[ProgramLine, ProgramLine | None]],
    stream: Stream,
) -> Operation:
    return Operation(
        name=fields.text(record["op"]),
        inputs=tuple(
            (fields.digest(digest), fields.whole(made))
            for digest, made in fields.items(record["in"], 1 << 16)
        ),
        plain=fields.digest(record["plain"]),
        outputs=tuple(fields.digest(digest) for digest in fields.items(record["out"], 1 << 16)),
        kept=tuple(fields.whole(at) for at in fields.items(record["kept"], 1 << 16)),
        shapes=tuple(fields.text(shape) for shape in fields.items(record["shapes"], 1 << 16)),
        place=places[fields.whole(record["place"])][0],
        made_at=places[fields.whole(record["place"])][1],
        module=fields.text(record["module"], 300),
        backward=fields.truth(record["back"]),
        deterministic=fields.truth(record["flag"]),
        thread=fields.text(record["thread"]),
        empty=fields.truth(record["empty"]),
        moment=stream.recorded,
        sources=len(stream.sources),
        handed=tuple(fields.whole(at) for at in fields.items(record["handed"], 1 << 16)),
    )


def _place(value: Any) -> ProgramLine:
    file, line, function, text = fields.items(value, 4)
    return ProgramLine(
        fields.text(file, 300), fields.whole(line), fields.text(function), fields.text(text, 300)
    )
