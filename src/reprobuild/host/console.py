"""How the steps talk: lines on standard error, and progress bars when it is a terminal.

The steps take a `Console` and never print; cli.py makes one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console as RichConsole
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TransferSpeedColumn,
)
from rich.text import Text


class Console:
    """Talk on standard error. ``quiet`` keeps only warnings."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        # What is printed are names and messages: ":a:" is no emoji in them, "[x]" no style.
        self._err = RichConsole(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)

    def step(self, text: str) -> None:
        """Say what is being done now."""
        if not self.quiet:
            self._err.print(Text.assemble(("·", "bold"), f" {text}"))

    def warn(self, text: str) -> None:
        """Say what the user should know, though the work goes on."""
        self._err.print(Text.assemble(("warning:", "yellow"), f" {text}"))

    @contextmanager
    def progress(self, title: str, total: int) -> Iterator[Callable[[int], None]]:
        """A bar over ``total`` bytes; call what it gives with the bytes done since the last call.

        That may be done from several threads. Shows nothing when standard error is no terminal.
        """
        if self.quiet or not self._err.is_terminal or total <= 0:
            yield lambda _: None
            return
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self._err, transient=True) as bars:
            task = bars.add_task(title, total=total)
            yield lambda amount: bars.advance(task, amount)
