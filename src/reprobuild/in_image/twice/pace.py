"""An experiment: the program's clocks run faster, so that a time in what it writes grows. A result does not.

``REPROBUILD_TWICE_PACE`` says how many times as fast. What a process has used, such as memory, is as many
times as much. The first process adds what the clocks showed then, so that those of all processes agree.
Modules that only wait by a clock have it as it is.
"""

from __future__ import annotations

import functools
import os
import time

TYPE_CHECKING = False  # importing typing costs milliseconds at the start of every process
if TYPE_CHECKING:
    from typing import Any

PACE = "REPROBUILD_TWICE_PACE"
_CLOCKS = ("monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns")


class Pace:
    """Turns what a clock shows into what a faster one would, and other measures into larger ones."""

    def __init__(self) -> None:
        times, *began = os.environ[PACE].split(":")
        if not began:
            began = [f"{time.time_ns()}", f"{time.monotonic_ns()}"]
            os.environ[PACE] = ":".join((times, *began))
        self.times = int(times)
        self.dates, self.others = map(int, began)

    def of(self, name: str) -> Any:
        """Return a function of what the clock of that name shows; None: it is left as it is."""
        if name.startswith("clock_gettime"):  # which clock it is stands in its argument
            return None
        began = self.dates if name in ("time", "time_ns") else self.others if name in _CLOCKS else 0
        return functools.partial(self.faster, began if name.endswith("_ns") or not began else began / 1e9)

    def faster(self, began: float, value: Any) -> Any:
        """Return what a clock shows that is as many times as far from its beginning."""
        return began + self.times * (value - began)

    def moved(self, moment: Any, seconds: float) -> Any:
        """Return a date of datetime as a faster clock would show it; ``seconds``: since 1970."""
        import datetime  # noqa: PLC0415 -- it is there: it made the date

        return moment + datetime.timedelta(seconds=(self.times - 1) * (seconds - self.dates / 1e9))


def chosen() -> Pace | None:
    """Return the pace that the run asks for."""
    return Pace() if os.environ.get(PACE) else None
