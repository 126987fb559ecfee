"""A trace of the program's own lines: what each statement found before it ran, and what it left, by digests.

Where two runs differ, the first statement that found the same in both and left something else is where the
difference came in. ``REPROBUILD_TWICE_LINES`` says what is done with a statement:

- ``trace``: each is recorded.
- ``keep``: the values that one statement leaves are kept.
- ``give``: that statement leaves the values that were kept in another run, and nothing else is changed.

Records and values are in a file a process, beside the others, each written at once.
"""

from __future__ import annotations

import json
import linecache
import os
import sys
import threading
from time import monotonic_ns, process_time
from typing import Any

from . import held_values as held
from . import line_values as values
from .places import is_users
from .statements import Statement, statements
from .watching import warn

LINES = "REPROBUILD_TWICE_LINES"
FORMAT = 1
MOST = 100_000
"""Records of one process."""
MOST_TURNS = 1000
"""Of one statement in one process."""
MOST_VALUES = 300_000
"""Values that are looked at for one statement in one process: the turns of one that sees more are fewer."""
MOST_SECONDS = 60.0
"""Processor time that the digests of one process may take."""
_clock = getattr(monotonic_ns, "__wrapped__", monotonic_ns)
_spent = getattr(process_time, "__wrapped__", process_time)
NO_FRAMES = frozenset(("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"))
_GENERATORS = 0x20 | 0x80 | 0x200
"""Flags of the code of generators and coroutines, which are called again and again."""


class Lines:
    """What the frames of one process share."""

    def __init__(self, folder: str) -> None:
        self._folder, self._file = folder, -1
        self.frames: dict[int, Frame] = {}
        self.main: list[Frame] = []
        """The frames of the main thread, the innermost last."""
        self._tables: dict[str, dict[int, Statement] | None] = {}
        self._places: dict[tuple[str, int, str], int] = {}
        self._turns: dict[tuple[str, int], int] = {}
        self._costs: dict[tuple[str, int], int] = {}
        self._done: set[Any] = set()
        """Code of which nothing more is recorded."""
        self._number = 0
        self._began = _spent()
        self._lock = threading.RLock()
        """Of what threads share: numbers, places, the file."""
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file, self._places, self._turns, self._number = -1, {}, {}, 0
        self._costs = {}
        self._lock = threading.RLock()
        self._began = _spent()
        for frame in list(self.frames.values()):  # what goes on here began in the other process
            frame.forget()

    def called(self, frame: Any, event: str, _: Any) -> Any:
        """Take the beginning of a frame, as `sys.settrace` gives it; return what takes its lines."""
        code = frame.f_code
        if event != "call" or code in self._done or not is_users(code.co_filename):
            return None
        try:
            return self._begun(frame, code)
        except Exception as error:  # noqa: BLE001 -- the program must not fail because of the recorder
            warn(f"a call in {code.co_filename} is not traced", error)
            return None

    def _begun(self, frame: Any, code: Any) -> Any:
        table = self.table(frame) if code.co_name not in NO_FRAMES else None
        if table is None:
            self._done.add(code)
            return None
        if self.full():
            sys.settrace(None)  # this thread goes on at its own speed
            return None
        made = Frame(self, table, frame)
        self.frames[id(frame)] = made
        if threading.current_thread() is threading.main_thread():
            self.main.append(made)
        if not code.co_flags & _GENERATORS and code.co_name != "<module>":
            made.entered(frame)
        return made.event

    def ended(self, frame: Any, of: Frame) -> None:
        """Take the end of a frame; where all its statements had their turns, the next call is not traced."""
        self.frames.pop(id(frame), None)
        if of in self.main:
            self.main.remove(of)
        if not of.began and not frame.f_code.co_flags & _GENERATORS:
            self._done.add(frame.f_code)

    def full(self) -> bool:
        """Return whether as much was recorded as may be."""
        return self._number >= MOST or _spent() - self._began > MOST_SECONDS

    def table(self, frame: Any) -> dict[int, Statement] | None:
        """Return the statements of a frame's file by their lines."""
        file = frame.f_code.co_filename
        if file not in self._tables:
            try:
                source = "".join(linecache.getlines(file, frame.f_globals))
                self._tables[file] = statements(source) if source else None
            except (SyntaxError, ValueError, RecursionError):
                self._tables[file] = None
        return self._tables[file]

    def turn(self, file: str, line: int) -> int:
        """Return how often a statement has begun before, and count it; `MOST_TURNS` of one that is done."""
        found = self._turns.get((file, line), 0)
        self._turns[file, line] = found + 1
        return found if self._costs.get((file, line), 0) < MOST_VALUES else MOST_TURNS

    def charge(self, file: str, line: int, began: int) -> None:
        """Count what was looked at for a statement since then."""
        self._costs[file, line] = self._costs.get((file, line), 0) + values.looked_at[0] - began

    def number(self) -> int:
        """Return the number of a statement that begins."""
        with self._lock:
            self._number += 1
            return self._number

    def place(self, file: str, line: int, end: int, function: str) -> int:
        """Return the number of a place, which is recorded at its first use."""
        key = (file, line, function)
        with self._lock:
            found = self._places.get(key)
            if found is None:
                found = self._places[key] = len(self._places)
                text = linecache.getline(file, line).strip()[:300]
                at = [file[-300:], line, function[:200], text]
                self.write({"k": "place", "n": found, "at": at, "end": end})
        return found

    def write(self, record: dict[str, Any]) -> None:
        """Write a record into this process's file."""
        with self._lock:
            self._write(record)

    def _write(self, record: dict[str, Any]) -> None:
        if self._file < 0:
            from .writing import identity  # noqa: PLC0415 -- torch's modules may be there by now

            path = f"{self._folder}/{_clock():020d}-{os.getpid()}.lines"
            self._file = os.open(
                path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644
            )
            rank = os.environ.get("RANK", "")[:20]
            self._line({"k": "process", "format": FORMAT, "rank": rank, **identity()})
        self._line(record)

    def _line(self, record: dict[str, Any]) -> None:
        os.write(self._file, json.dumps(record, separators=(",", ":")).encode() + b"\n")


class Frame:
    """One call of a function of the program."""

    __slots__ = ("_drawn", "_from", "_lines", "_number", "_seen", "_statement", "_table", "_where", "began")

    def __init__(self, lines: Lines, table: dict[int, Statement], frame: Any) -> None:
        self._lines, self._table = lines, table
        self._statement: Statement | None = None
        self._number = 0
        self.began = False
        """Whether a statement of this call was recorded."""
        self._seen: dict[str, str] = {}
        self._drawn: dict[str, str] = {}
        """The states of the generators of modules before the statement."""
        outer, up = frame.f_back, None
        while outer is not None and up is None:
            up, outer = lines.frames.get(id(outer)), outer.f_back
        if up is None and lines.main:  # a thread's first: what the main thread does meanwhile waits for it
            up = lines.main[-1]
        self._from = up._number if up is not None and up._statement is not None else 0
        self._where = (frame.f_code.co_filename, frame.f_code.co_name)

    def event(self, frame: Any, event: str, value: Any) -> Any:
        """Take an event of this frame, as `sys.settrace` gives it."""
        try:
            if event == "line":
                found = self._table.get(frame.f_lineno)
                if found is self._statement:
                    return self.event  # another line of it
                again = found is not None and self._lines.turn(self._where[0], found.line) < MOST_TURNS
                if self._statement is None and not again:
                    return self.event
                names = frame.f_locals
                known: dict[tuple[str, ...], tuple[str, Any]] = {}
                states = values.generators()
                began, before = values.looked_at[0], self._statement or found
                self._ended(frame, names, known, states)
                if found is not None and again and not self._lines.full():
                    self._begins(found, frame, names, known)
                if before is not None:
                    self._lines.charge(self._where[0], before.line, began)
                self._drawn = states
            elif event == "return":
                if self._statement is not None:
                    began, line = values.looked_at[0], self._statement.line
                    self._ended(frame, frame.f_locals, {}, values.generators(), value)
                    self._lines.charge(self._where[0], line, began)
                self._lines.ended(frame, self)
        except Exception as error:  # noqa: BLE001 -- the program must not fail because of the recorder
            warn(f"a line of {self._where[0]} is not traced", error)
            self._statement = None
        return self.event

    def forget(self) -> None:
        """Forget the statement that is running."""
        self._statement, self._number = None, 0

    def entered(self, frame: Any) -> None:
        """Record what a function was given."""
        code = frame.f_code
        if self._lines.turn(code.co_filename, -code.co_firstlineno) >= MOST_TURNS:
            return
        names = frame.f_locals
        given = {name: names[name] for name in code.co_varnames[: _parameters(code)] if name in names}
        if given:
            began = values.looked_at[0]
            at = (code.co_firstlineno,) * 2
            self._record("call", at, self._lines.number(), given, drew={}, generators={}, inside={})
            self._lines.charge(code.co_filename, -code.co_firstlineno, began)

    def _begins(
        self, found: Statement, frame: Any, names: Any, known: dict[tuple[str, ...], tuple[str, Any]]
    ) -> None:
        self._statement, self._number = found, self._lines.number()
        self.began = True
        self._seen = {
            ".".join(path): each
            for path in found.reads
            if (each := _digested(path, names, frame.f_globals, known)[0])
        }

    def _ended(
        self,
        frame: Any,
        names: Any,
        known: dict[tuple[str, ...], tuple[str, Any]],
        states: dict[str, str],
        returned: Any = None,
    ) -> None:
        found = self._statement
        if found is None:
            return
        left: dict[str, Any] = {}
        generators: dict[str, tuple[int, str]] = {}
        for path in found.paths:
            each, value = _digested(path, names, frame.f_globals, known)
            if each:
                name = ".".join(path)
                left[name] = (each, value)
                if self._seen.get(name, each) != each and held.state_of(value) is not held.MISSING:
                    line = found.lines.get(path, found.line)
                    generators[name] = (line, linecache.getline(self._where[0], line).strip()[:300])
        if returned is not None:
            left[RETURNED] = (values.digest(returned), returned)
        drew = {
            name: [self._drawn.get(name, ""), state]
            for name, state in states.items()
            if state != self._drawn.get(name, "")
        }
        kind = "branch" if found.branches else "line"
        name = RETURNED if RETURNED in left else ".".join(found.writes[0]) if found.writes else ""
        made = left.get(name)
        inside = self._inside(found, made[1]) if made is not None else {}
        self._record(
            kind,
            (found.line, found.end),
            self._number,
            left,
            drew=drew,
            generators=generators,
            inside=inside,
            new=name if found.makes else "",
        )
        self._statement, self._number = None, 0

    def _inside(self, found: Statement, made: Any) -> dict[int, tuple[str, str]]:
        """Return the lines of the parts of a value that was written out, each with its digest and text."""
        parts: dict[int, tuple[str, str]] = {}
        for line, name in found.inside:
            part = held.part_of(made, name)
            told = values.digest(part) if part is not held.MISSING else ""
            if told and line not in parts:
                parts[line] = (told, linecache.getline(self._where[0], line).strip()[:300])
        return parts

    def _record(
        self,
        kind: str,
        lines: tuple[int, int],
        number: int,
        left: dict[str, Any],
        *,
        drew: dict[str, list[str]],
        generators: dict[str, tuple[int, str]],
        inside: dict[int, tuple[str, str]],
        new: str = "",
    ) -> None:
        """Record a statement that has ended, or what a function was given; it made what is called ``new``."""
        seen = self._seen if kind != "call" else {}
        told = {}
        for name, value in left.items():
            each, inner = value if kind != "call" else (values.digest(value), value)
            if each:
                told[name] = [each, values.shown(inner), values.objects(inner, new=name == new)]
        self._lines.write(
            {
                "k": kind,
                "n": number,
                "up": self._from,
                "p": self._lines.place(self._where[0], *lines, self._where[1]),
                "t": threading.current_thread().name[:100],
                "at": _clock(),
                "in": seen,
                "out": told,
                "drew": drew,
                "gens": generators,
                "inside": inside,
            }
        )


RETURNED = "the value returned"
"""What a statement that returns or yields leaves."""


def _parameters(code: Any) -> int:
    return int(code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8))


def _digested(
    path: tuple[str, ...], names: Any, outer: Any, known: dict[tuple[str, ...], tuple[str, Any]]
) -> tuple[str, Any]:
    found = known.get(path)
    if found is None:
        value = held.find(path, names, outer)
        found = known[path] = ("" if value is held.MISSING else values.digest(value), value)
    return found


def follow(lines: Lines) -> None:
    """Take this process's frames from now on, and those of processes that it forks."""
    sys.settrace(lines.called)
    threading.settrace(lines.called)
