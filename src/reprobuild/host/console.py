"""Progress reports: lines on standard error, and progress bars on a terminal.

The steps take a `Console` and never print; cli/ makes one.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO

from ..errors import StorageError

if TYPE_CHECKING:
    from rich.console import Console as RichConsole


_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and line feed, DEL, C1: a terminal obeys them
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # change the direction of what stands around them
    "\u2028\u2029\ufeff\ud800-\udfff]"  # line ends to some, marks, and no characters at all
)

_UNSEEN = {*"\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0", *map(chr, range(0xFE00, 0xFE10))}
"""Characters that Unicode calls printable, and that have no ink: fillers, and selectors of variants."""

ERASED = "\r\x1b[K"
"""Escape sequence that clears the line of a terminal."""

_OFTEN = 30.0
"""Ticks until a running step is repeated without a terminal; doubles each time."""


def printable(text: str) -> str:
    """Escape control characters; names and messages may come from untrusted files.

    What a terminal would obey is written as ``\\u001b``, which in JSON means the same character.
    """
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def one_line(text: str) -> str:
    """Escape all that has no shape of its own, line ends and blanks other than the space among it.

    For what a user agrees to: as `printable`, and nothing in it is unseen or looks like another line.
    """
    return "".join(
        each
        if each.isprintable() and each not in _UNSEEN
        else f"\\u{ord(each):04x}"
        if each <= "\uffff"
        else f"\\U{ord(each):08x}"
        for each in text
    )


class PrintableStream:
    """A text stream that escapes control characters. Raises `StorageError` if the disk is full."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.used = False
        self.before_write: Callable[[], None] = lambda: None

    def write(self, text: str) -> int:
        """Write text; return its length."""
        self.used = True
        self.before_write()
        with _output_errors():
            self._stream.write(printable(text))
        return len(text)

    def flush(self) -> None:
        """Flush the buffer."""
        with _output_errors():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        """Delegate everything else to the stream."""
        return getattr(self._stream, name)


@contextmanager
def _output_errors() -> Iterator[None]:
    """Turn what the disk behind standard output refuses into `StorageError`; a closed pipe passes."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StorageError(
            f"standard output cannot be written: {error.strerror}", hint="free some space, or write elsewhere"
        ) from None


class Console:
    """Progress and warnings on standard error. ``quiet`` keeps only warnings."""

    def __init__(self, *, quiet: bool = False, verbose: bool = False) -> None:
        self.quiet, self.verbose = quiet, verbose
        self._bars: Any = None
        self._printing = threading.RLock()
        self._step, self._detail, self._since, self._next = "", "", 0.0, 0.0
        self._drawn = False

    @cached_property
    def _err(self) -> RichConsole:
        from rich.console import Console as RichConsole

        # What is printed are names and messages, in which ":a:" is not an emoji and "[x]" not a style.
        return RichConsole(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)

    def step(self, text: str) -> None:
        """Print the current step."""
        if not self.quiet:
            with self._printing:
                self._line("·", "bold", text)
                self._step, self._detail, self._since, self._next = text, "", time.monotonic(), _OFTEN

    def warn(self, text: str) -> None:
        """Print a warning."""
        self._line("warning:", "yellow", text)

    def detail(self, text: str) -> None:
        """Set the progress of the current step, which the `clock` shows."""
        with self._printing:
            self._detail = text

    def rest(self) -> None:
        """Erase the `clock` and let it rest until the next step: a result is being printed."""
        with self._printing:
            self._erase()
            self._step = ""

    @contextmanager
    def clock(self, *, every: float = 1.0) -> Iterator[None]:
        """Show during the block for how long the last step has been going on.

        On a terminal it is a line that changes each second; elsewhere, and on one that cannot erase a
        line, a line after 30 seconds, after 60, 120 and so on. ``every``: the seconds of a tick.
        """
        if self.quiet or self.verbose:  # the log shows what goes on, line by line
            yield
            return
        done = threading.Event()

        def tick() -> None:
            while not done.wait(every):
                with self._printing:
                    if self._step and self._bars is None:
                        self._show_time(every)

        thread = threading.Thread(target=tick, name="clock", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            self.rest()

    def _show_time(self, every: float) -> None:
        seconds = time.monotonic() - self._since
        detail = f"{self._detail}, " if self._detail else ""
        passed = f"{detail}{int(seconds) // 60}:{int(seconds) % 60:02}"
        if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            width = shutil.get_terminal_size((80, 24)).columns - 1
            with suppress(OSError):
                sys.stderr.write(f"{ERASED}  {passed}"[: width + len(ERASED)])
                sys.stderr.flush()
            self._drawn = True
        elif seconds >= self._next * every:
            self._next *= 2
            self._line("·", "bold", f"still {self._step}: {passed}")

    def _erase(self) -> None:
        if self._drawn:
            with suppress(OSError):
                sys.stderr.write(ERASED)
                sys.stderr.flush()
            self._drawn = False

    def _line(self, mark: str, style: str, text: str) -> None:
        with self._printing:
            self._erase()
            self._print(mark, style, text)

    def _print(self, mark: str, style: str, text: str) -> None:
        if not sys.stderr.isatty() and "FORCE_COLOR" not in os.environ:
            with suppress(BrokenPipeError):  # whoever reads it has gone
                sys.stderr.write(f"{mark} {printable(text)}\n")
                sys.stderr.flush()
            return
        from rich.text import Text

        self._err.print(Text.assemble((mark, style), f" {printable(text)}"))

    @contextmanager
    def progress(self, title: str, total: int) -> Iterator[Callable[[int], None]]:
        """A bar over ``total`` bytes; call the function it yields with the bytes done since the last call.

        It may be called from several threads. Shows nothing if standard error is not a terminal. A bar within
        the block of another is shown below it.
        """
        if self.quiet or not self._err.is_terminal or total <= 0:
            yield lambda _: None
            return
        with self._printing:
            self._erase()
        if self._bars is not None:
            task = self._bars.add_task(printable(title), total=total)
            try:
                yield lambda amount: self._bars.advance(task, amount)
            finally:
                self._bars.remove_task(task)
            return
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TransferSpeedColumn,
        )

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self._err, transient=True) as bars:
            self._bars = bars
            task = bars.add_task(printable(title), total=total)
            try:
                yield lambda amount: bars.advance(task, amount)
            finally:
                self._bars = None


def first_of(names: Sequence[str], most: int = 3) -> str:
    """Return the first of some names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def size_text(size: int) -> str:
    """Return a size as people read it: ``812 B``, ``3.4 MB``, ``2.9 GB``."""
    value, units = float(size), ["B", "kB", "MB", "GB"]
    while value >= 999.95 and len(units) > 1:
        value, units = value / 1000, units[1:]
    return f"{size} B" if units[0] == "B" else f"{value:.1f} {units[0]}"
