"""A console that keeps its steps, and an event for whoever waits for one."""

from __future__ import annotations

import threading

from reprobuild.host.console import Console


class Hearing(Console):
    """A quiet console; ``said`` is set by a step."""

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self.heard: list[str] = []
        self.said = threading.Event()

    def step(self, text: str) -> None:
        """Keep the text."""
        self.heard.append(text)
        self.said.set()
