"""What a check may say: its results, or why there are none."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Results = typing.Optional[typing.Mapping[str, object]]  # evaluated, by Python 3.8 too


class Failed(Exception):  # noqa: N818 -- an outcome
    """What the check guards against is the case. ``detail`` says what differed: what, expected, got."""

    def __init__(self, reason: str, detail: Sequence[Mapping[str, str]] = ()) -> None:
        super().__init__(reason)
        self.detail = [dict(line) for line in detail]


class Inconclusive(Exception):  # noqa: N818 -- an outcome
    """A control saw no nondeterminism, so it proves nothing on this machine."""


class NotRun(Exception):  # noqa: N818 -- an outcome
    """The check does not apply to this machine or this build of torch."""


@dataclass
class Outcome:
    """What one interpreter saw of one check on one device."""

    status: str
    reason: str = ""
    detail: list[dict[str, str]] = field(default_factory=list)
    results: dict[str, str] = field(default_factory=dict)
    values: dict[str, dict[str, str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    calls: int = 0
    seconds: float = 0.0
    traceback: str = ""


NOTES: list[str] = []  # of the check that is being run


def note(text: str) -> None:
    """Put a line beside the outcome of the check that is being run."""
    if text not in NOTES:
        NOTES.append(text)
