"""Read the recorder's trace of lines, and the values that it kept. Untrusted: bounded, and parsed strictly.

The format is that of ``in_image/twice/lines.py``: a file a process, a record a line. Kept values are the
program's own, and go back into its next run as they are: they are never unpickled here.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import IO, Any, TypeVar

from ..errors import BuildError, RepeatError
from ..host.untrusted_files import opened
from . import evidence_limits as limits
from . import record_fields as fields
from .records import ProgramLine

FORMAT = 1
MOST_FILES = 512
MOST_BYTES = 256 << 20
"""Of all files of a run together."""
MOST_RECORDS = 500_000
"""Of all files of a run together."""
LONGEST = 96 << 20
"""Bytes of a line."""
MOST_VALUES = 64 << 20
"""Characters of kept values, compressed."""
VALUES = "REPROBUILD_TWICE_VALUES"
"""The variable with them, which stands in the recorder's file of settings alone: none may be so long."""
_T = TypeVar("_T")
_DIGEST = re.compile(r"~?[0-9a-f]{12}")
_STATEMENTS = ("line", "branch", "call")
_STATEMENT = frozenset(("k", "n", "up", "p", "t", "at", "in", "out", "drew", "gens", "inside"))
_KEYS: Mapping[str | None, frozenset[str]] = {
    "process": frozenset(("k", "format", "rank", "worker", "name", "argv")),
    "place": frozenset(("k", "n", "at", "end")),
    **dict.fromkeys(_STATEMENTS, _STATEMENT),
    "kept": frozenset(("k", "t", "n", "held")),
    "failed": frozenset(("k", "why")),
}
RETURNED = "the value returned"
"""The recorder's name of what a statement returns or yields."""


@dataclass(frozen=True, slots=True)
class LineRecord:
    """One statement that ran to its end, or the beginning of a function's call."""

    kind: str
    number: int
    """Statements of a process are numbered as they begin."""
    up: int
    """The number of the statement that was running and led to this call; 0: none is known."""
    place: ProgramLine
    """Its first line."""
    end: int
    """The number of its last line."""
    thread: str
    at: int
    """Nanoseconds of a clock that all processes of a run share."""
    before: Mapping[str, str]
    """Digests of what it reads, by name."""
    after: Mapping[str, tuple[str, str]]
    """Digests of what it reads and writes once it has ended, each with the value as it is shown."""
    objects: Mapping[str, tuple[int, ...]]
    """Of these values that can change what tells them from others of the process, first the value itself."""
    drew: Mapping[str, tuple[str, str]]
    """Digests of the states of modules' generators before and after, of those that it changed."""
    generators: Mapping[str, ProgramLine]
    """Names of other generators that it drew from, each with the line where that stands."""
    inside: Mapping[ProgramLine, str] = field(default_factory=dict)
    """Lines of the parts of a value that it writes out over several, each with the digest of that part."""

    def first_inside(self, other: LineRecord) -> ProgramLine | None:
        """Return the line of the first such part that is another one in the other run, or is only here."""
        return next((at for at, each in self.inside.items() if other.inside.get(at) != each), None)


@dataclass(frozen=True, slots=True)
class LineStream:
    """What one process recorded, statements in the order in which they ended."""

    key: tuple[str, ...]
    """Rank, worker, name and program, which the same process of another run has in common."""
    records: tuple[LineRecord, ...]


def read_lines(folder: Path) -> list[LineStream]:
    """Return the statements of the processes of a run, in the order of their first records.

    Raises `RepeatError`.
    """
    return _each(folder, _stream)


def kept_values(folder: Path) -> dict[str, str] | None:
    """Return the variable that gives a run the values which another one kept; None: none, or too many.

    Raises `RepeatError`.
    """
    every = [kept for process in _each(folder, _kept) for kept in process]
    text = base64.b64encode(zlib.compress(json.dumps(every).encode())).decode()
    if not every or len(text) > MOST_VALUES:
        return None
    return {VALUES: text}


def has_failed(folder: Path) -> bool:
    """Return whether values could not be kept or given. Raises `RepeatError`."""
    return any(_each(folder, lambda _, records: any(record["k"] == "failed" for record in records)))


def _each(folder: Path, read: Callable[[Mapping[str, Any], Iterator[Mapping[str, Any]]], _T]) -> list[_T]:
    """Return what is read of each file, by its first record, a process's, and the others."""
    found: list[_T] = []
    paths = sorted(folder.glob("*.lines"))
    if len(paths) > MOST_FILES:
        raise _wrong(f"more than {MOST_FILES} processes have a trace of lines")
    left, records_left = MOST_BYTES, count(MOST_RECORDS, -1)
    for path in paths:
        try:
            with opened(folder, path.name) as file:
                records = _records(file, left, records_left)
                first = next(records, None)
                if first is not None:
                    found.append(read(first, records))
                left -= file.tell()
        except (OSError, ValueError, KeyError, TypeError, RecursionError, BuildError) as error:
            raise _wrong(f"{path.name}: {type(error).__name__} {error}") from None
    return found


def _wrong(fault: object) -> RepeatError:
    return RepeatError(
        f"the records of a run cannot be read: {fault}",
        hint="a program that writes into /run/reprobuild/records itself cannot be compared",
    )


def _records(file: IO[bytes], left: int, records_left: Iterator[int]) -> Iterator[dict[str, Any]]:
    """Yield the records of a file. Raises ValueError."""
    first = True
    while line := file.readline(LONGEST):
        left -= len(line)
        if left < 0:
            raise ValueError(f"the traces of a run are larger than {MOST_BYTES >> 20} MiB")
        if next(records_left) <= 0:
            raise ValueError(f"the traces of a run have more than {MOST_RECORDS:,} records")
        if not line.endswith(b"\n"):
            return  # the process was killed while it wrote its last
        record = limits.load_values(line)
        record = _object(record)
        kind = record.get("k")
        if record.keys() != _KEYS.get(kind, ()) or first != (kind == "process"):
            raise ValueError("a record has other keys than it should")
        if first and record["format"] != FORMAT:
            raise ValueError(f"format {record['format']}")
        first = False
        yield record


def _stream(first: Mapping[str, Any], records: Iterator[Mapping[str, Any]]) -> LineStream:
    places: dict[int, tuple[ProgramLine, int]] = {}
    lines = []
    for record in records:
        if record["k"] == "place":
            places[fields.whole(record["n"])] = (_place(record["at"]), fields.whole(record["end"]))
        elif record["k"] in _STATEMENTS:
            lines.append(_line(record, places))
    who = (first["rank"], first["worker"], first["name"], *first["argv"][:1])
    return LineStream(tuple(map(_text, who)), tuple(lines))


def _kept(first: Mapping[str, Any], records: Iterator[Mapping[str, Any]]) -> list[list[Any]]:
    process = [_text(first[name]) for name in ("worker", "name", "rank")]
    kept = [record for record in records if record["k"] == "kept"]
    if not all(isinstance(record["held"], str) for record in kept):
        raise ValueError("a kept value is not a string")
    return [[process, _text(record["t"]), fields.whole(record["n"]), record["held"]] for record in kept]


def _line(record: Mapping[str, Any], places: Mapping[int, tuple[ProgramLine, int]]) -> LineRecord:
    place, end = places[fields.whole(record["p"])]
    before, after, drew, drawn, inside = (
        _object(record[name]) for name in ("in", "out", "drew", "gens", "inside")
    )
    return LineRecord(
        kind=record["k"],
        number=fields.whole(record["n"]),
        up=fields.whole(record["up"]),
        place=place,
        end=end,
        thread=_text(record["t"]),
        at=fields.whole(record["at"]),
        before={_text(name): _digest(each) for name, each in before.items()},
        objects={
            name: tuple(map(fields.whole, fields.items(held, 16))) for name, (_, _, held) in after.items()
        },
        drew={_text(name): (_state(x), _state(y)) for name, (x, y) in drew.items()},
        generators={
            _text(name): replace(place, line=fields.whole(line), text=_text(text))
            for name, (line, text) in drawn.items()
        },
        after={_text(name): (_digest(each), _text(shown)) for name, (each, shown, _) in after.items()},
        inside={
            replace(place, line=fields.whole(int(line)), text=_text(text)): _digest(each)
            for line, (each, text) in inside.items()
        },
    )


def _place(value: Any) -> ProgramLine:
    file, line, function, text = value
    return ProgramLine(_text(file), fields.whole(line), _text(function), _text(text))


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("not an object")  # noqa: TRY004 -- all that is wrong with a record is a ValueError
    return value


def _text(value: Any) -> str:
    return fields.text(value, 300)


def _digest(value: Any) -> str:
    if not isinstance(value, str) or _DIGEST.fullmatch(value) is None:
        raise ValueError("not a digest")
    return value


def _state(value: Any) -> str:
    return value if value == "" else _digest(value)
