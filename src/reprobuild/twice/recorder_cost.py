"""Overhead of the recorder, from the steps of runs with and without it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from .records import Stream


@dataclass(frozen=True, kw_only=True, slots=True)
class RecorderCost:
    """Medians, in seconds a step; the first step of a process, which has its start in it, is left out."""

    recorded: float
    plain: float
    steps: int
    """Steps that were timed with the recorder, of all runs; without it there are as many a run."""

    @property
    def percent(self) -> float:
        """Overhead per step, in percent of a step without the recorder."""
        return 100 * (self.recorded / self.plain - 1)


def measured(
    recorded: Sequence[Sequence[Stream]], plain: Sequence[Stream], every: int
) -> RecorderCost | None:
    """Return the overhead from runs with and without the recorder; None with too few steps.

    Of ``every`` steps one is compared whole, so their time is taken together.
    """
    found = [_times(streams, every) for streams in recorded]
    with_it, without = [time for times in found for time in times], _times(plain, every)
    if not with_it or not without or not median(without):
        return None
    return RecorderCost(recorded=median(with_it), plain=median(without), steps=len(with_it) * every)


def _times(streams: Sequence[Stream], every: int) -> list[float]:
    """Return the seconds a step of each ``every`` steps in turn."""
    found = []
    for stream in streams:
        steps, since = list[float](), 0.0
        for moment in stream.moments:
            since += moment.wall
            if moment.kind == "step":
                steps.append(since)
                since = 0.0
        found += [sum(steps[at : at + every]) / every for at in range(1, len(steps) - every + 1, every)]
    return found
