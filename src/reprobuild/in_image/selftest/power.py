"""How rare a deviation a check finds.

A deviation that befalls each call with probability p is found by n calls unless it befalls none of them,
so with probability 1 - (1 - p) ** n.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from .exact import difference, flattened
from .outcomes import Failed

_Value = TypeVar("_Value")
CONFIDENCE = 0.99
RATES = {"battery": 1 / 20, "full": 1 / 200}
"""The rate of deviations that `steady` finds with `CONFIDENCE`."""
RUNS = 4
"""How often a check is run for one report: twice in each of two interpreters."""


def calls_for(rate: float) -> int:
    """Return how many calls find a deviation of this rate with `CONFIDENCE`."""
    return math.ceil(math.log(1 - CONFIDENCE) / math.log(1 - rate))


def rate_for(calls: int) -> float:
    """Return the smallest rate of deviations that so many calls find with `CONFIDENCE`."""
    return float(1 - (1 - CONFIDENCE) ** (1 / calls))


@dataclass
class Repeats:
    """How often `steady` calls an operation in one run of a check, and has in the one that is being run."""

    wanted: int
    made: int = 1

    def set_for(self, mode: str) -> None:
        """Want as many as the mode's rate needs: 23 in each of four runs, 230 with "full"."""
        self.wanted = math.ceil(calls_for(RATES[mode]) / RUNS)


REPEATED = Repeats(math.ceil(calls_for(RATES["battery"]) / RUNS))


def steady(run: Callable[[], Mapping[str, _Value]]) -> dict[str, _Value]:
    """Return what ``run`` gives, as "small NAME"; it is for shapes that take well below a millisecond.

    It is called as often as `REPEATED` wants, beside the large shapes of the check, which cost too much for
    that. Raises `Failed` when a call differs from the first.
    """
    first = run()
    expected = flattened(first)
    for number in range(2, REPEATED.wanted + 1):
        again = run()
        if flattened(again) != expected:
            lines = [difference(name, value, again[name]) for name, value in first.items()]
            reason = f"call {number} of {REPEATED.wanted} differs from the first"
            raise Failed(reason, [line for line in lines if line])
    REPEATED.made = REPEATED.wanted
    return {f"small {name}": value for name, value in first.items()}
