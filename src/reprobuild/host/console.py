"""How the steps report progress: lines on standard error, and progress bars if it is a terminal.

The steps take a `Console` and never print; cli/ makes one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console as RichConsole


class Console:
    """Progress and warnings on standard error. ``quiet`` keeps only warnings."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet

    @cached_property
    def _err(self) -> RichConsole:
        from rich.console import Console as RichConsole

        # What is printed are names and messages, in which ":a:" is not an emoji and "[x]" not a style.
        return RichConsole(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)

    def step(self, text: str) -> None:
        """Print what is being done now."""
        if not self.quiet:
            self._line("·", "bold", text)

    def warn(self, text: str) -> None:
        """Print what the user should know although the work goes on."""
        self._line("warning:", "yellow", text)

    def _line(self, mark: str, style: str, text: str) -> None:
        from rich.text import Text

        self._err.print(Text.assemble((mark, style), f" {text}"))

    @contextmanager
    def progress(self, title: str, total: int) -> Iterator[Callable[[int], None]]:
        """A bar over ``total`` bytes; call the function it yields with the bytes done since the last call.

        It may be called from several threads. Shows nothing if standard error is not a terminal.
        """
        if self.quiet or not self._err.is_terminal or total <= 0:
            yield lambda _: None
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
            task = bars.add_task(title, total=total)
            yield lambda amount: bars.advance(task, amount)
