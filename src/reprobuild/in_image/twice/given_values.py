"""An experiment: one statement leaves the values that it left in another run, and nothing else is changed.

``REPROBUILD_TWICE_LINE`` names the statement by kind, line, file and the names of what it leaves, tab by tab.
In the first run their values are kept, turn by turn, in a file a process; for the others they come back in
the file of `settings`.
"""

from __future__ import annotations

import base64
import dis
import os
import threading
import zlib
from typing import Any

from . import held_values as values
from . import settings
from .lines import LINES, NO_FRAMES, Lines, follow
from .places import is_users
from .transplants import dumped, give

LINE = "REPROBUILD_TWICE_LINE"
MOST_TURNS = 20_000
MOST_BYTES = 48 << 20
"""Of the values of one process, before they are compressed."""


class Kept(Lines):
    """Keeps what the statement leaves."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.kind, line, self.file, *names = os.environ[LINE].split("\t")
        self.line = int(line)
        self.paths = [tuple(name.split(".")) for name in names]
        self._room = MOST_BYTES

    def called(self, frame: Any, event: str, _: Any) -> Any:
        """Take the beginning of a frame."""
        code = frame.f_code
        here = event == "call" and code.co_filename[-300:] == self.file and code.co_name not in NO_FRAMES
        if not here or not is_users(code.co_filename):
            return None
        if self.kind == "call":
            if code.co_firstlineno == self.line:
                self.at(frame, frame.f_locals)
            return None
        table = self.table(frame)
        lines = (line for _, line in dis.findlinestarts(code))
        if table is None or not any(self.line == table[line].line for line in lines if line in table):
            return None
        return _Watched(self).event

    def at(self, frame: Any, names: Any) -> None:
        """Take the moment at which the statement has ended."""
        try:
            self.left(names, frame.f_globals, self.turn(threading.current_thread().name, 0))
        except Exception as error:  # noqa: BLE001 -- the program must not fail because of the recorder
            self.write({"k": "failed", "why": f"{type(error).__name__}: {error}"[:300]})

    def left(self, names: Any, outer: Any, turn: int) -> None:
        """Keep what it left."""
        data = dumped({".".join(path): values.find(path, names, outer) for path in self.paths})
        self._room -= len(data)
        if self._room < 0 or turn >= MOST_TURNS:
            raise OverflowError("there is too much of them")
        text = base64.b64encode(data).decode()
        self.write({"k": "kept", "t": threading.current_thread().name[:100], "n": turn, "held": text})


class Given(Kept):
    """Gives what another run's statement left."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self._held: dict[tuple[str, int], bytes] | None = None

    def _forked(self) -> None:
        super()._forked()
        self._held = None  # that of another process

    def held(self) -> dict[tuple[str, int], bytes]:
        """Return what was kept of this process, by thread and turn."""
        if self._held is None:
            import json  # noqa: PLC0415 -- only here

            from .writing import identity  # noqa: PLC0415 -- as above

            text = settings.every().get(os.fsencode(settings.VALUES), b"")
            every = json.loads(zlib.decompress(base64.b64decode(text))) if text else []
            who = identity()
            mine = [who["worker"], who["name"], os.environ.get("RANK", "")]
            self._held = {
                (thread, turn): base64.b64decode(data)
                for process, thread, turn, data in every
                if process == mine
            }
        return self._held

    def left(self, names: Any, outer: Any, turn: int) -> None:
        """Give what was kept of that turn."""
        data = self.held().get((threading.current_thread().name[:100], turn))
        if data is not None:
            give(data, self.paths, names, outer)


class _Watched:
    """One call of the function that has the statement."""

    def __init__(self, kept: Kept) -> None:
        self._kept, self._inside = kept, False

    def event(self, frame: Any, event: str, _: Any) -> Any:
        """Take an event of the frame, as `sys.settrace` gives it."""
        if event in ("line", "return"):
            table = self._kept.table(frame)
            found = table.get(frame.f_lineno) if table is not None and event == "line" else None
            inside = found is not None and found.line == self._kept.line
            if self._inside and not inside:
                self._kept.at(frame, frame.f_locals)
            self._inside = inside
        return self.event


def install() -> None:
    """Trace all lines of this process, or keep or give what one of them leaves."""
    kinds = {"trace": Lines, "keep": Kept, "give": Given}
    follow(kinds[os.environ[LINES]](os.environ["REPROBUILD_TWICE"]))
