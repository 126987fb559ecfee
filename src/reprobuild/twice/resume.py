"""Compare a whole run with an interrupted and resumed one: which state was not restored? Pure."""

from __future__ import annotations

import shlex
from collections.abc import Container, Sequence
from dataclasses import dataclass

from .records import Moment, Stream


@dataclass(frozen=True, kw_only=True, slots=True)
class Resumed:
    """The result of stopping and resuming a run."""

    at: int
    """The step, counted in the whole run, at which it went on."""
    steps: int
    """Steps of the whole run."""
    lost: tuple[str, ...]
    """State that was not as in the whole run when it went on."""
    first: str
    """What of the first step that differed then did so first; empty where all were equal."""
    first_at: int
    """That step."""
    problem: str = ""
    """Why nothing could be compared; else empty."""

    @property
    def holds(self) -> bool:
        """Whether the run that stopped ended with the bits of the whole one."""
        return not (self.problem or self.lost or self.first)


def resume_command(
    command: Sequence[str], resume: tuple[str, str] | None, interrupt_at: int | None
) -> tuple[str, ...]:
    """Return the command that is stopped and resumed in one container.

    ``resume`` are the two shell commands; with ``interrupt_at`` the recorder ends ``command`` after that many
    steps, and it is started once more.
    """
    if resume:
        return ("sh", "-e", "-c", "\n".join(resume))  # a first command that fails is the end
    words = shlex.join(command)
    return ("sh", "-c", f"REPROBUILD_TWICE_STOP={interrupt_at} {words}\n{words}")


_STATE = ("parameters", "optimizer state", "optimizer settings")
"""What is as it was saved until the first step after the stop has been taken."""
_LATER = {
    "scheduler": "the scheduler",
    "gradient scaler": "the gradient scaler",
    "batch": "the place in the data",
}
"""What is compared at that step, and its name for a reader."""


def compare_resumed(whole: Sequence[Stream], stopped: Sequence[Stream]) -> Resumed:
    """Compare a whole run with a stopped and resumed one.

    ``stopped`` has the processes before the stop and after it, in their order.
    """
    mains = [[s for s in streams if _steps(s) and s.rank in ("", "0")] for streams in (whole, stopped)]
    if not mains[0]:
        return _nothing("the whole run took no step of an optimizer")
    if len(mains[1]) < 2:
        return _nothing("after the stop no step was taken: the program did not go on")
    complete, before, after = _steps(mains[0][-1]), _steps(mains[1][0]), _steps(mains[1][-1])
    for number, (one, other) in enumerate(zip(complete, before, strict=False)):
        if any(_part(one, name) != _part(other, name) for name in (*_STATE, "buffers")):
            return _nothing(f"it differs at step {number}, before the stop: see first whether it repeats")
    at = len(complete) - len(after)
    if at < 0:
        return _nothing(f"the whole run took {len(complete)} steps, the one that went on {len(after)} more")
    if at == 0:
        return _nothing("after the stop it began at the first step again: it found no checkpoint")
    unseeded = {p.name for p in complete[0].parts if _part(before[0], p.name) != p.digest}
    lost = _lost(mains[1][-1], complete, at, unseeded)
    differing = [number for number, step in enumerate(after) if _first(complete[at + number], step)]
    there = differing[0] if differing else 0
    first = _first(complete[at + there], after[there])
    settings = "optimizer settings"
    if not lost and first and _part(complete[at + there], settings) != _part(after[there], settings):
        lost = [settings]  # a scheduler that had forgotten its place
    return Resumed(at=at, steps=len(complete), lost=tuple(lost), first=first, first_at=at + there)


def _nothing(problem: str) -> Resumed:
    return Resumed(at=0, steps=0, lost=(), first="", first_at=0, problem=problem)


def _steps(stream: Stream) -> list[Moment]:
    return [moment for moment in stream.moments if moment.kind == "step"]


def _lost(after: Stream, complete: Sequence[Moment], at: int, unseeded: Container[str]) -> list[str]:
    start = next((moment for moment in after.moments if moment.kind == "start"), None)
    before, then, first = complete[at - 1], complete[at], _steps(after)[0]
    lost = []
    if start is not None:
        lost += [name for name in _STATE if _part(start, name) != _part(before, name)]
    if "optimizer settings" in lost and _part(first, "optimizer settings") == _part(
        then, "optimizer settings"
    ):
        lost.remove("optimizer settings")  # a scheduler sets the rate between two steps
    lost += [told for name, told in _LATER.items() if _part(first, name) != _part(then, name)]
    generators = [part.name for part in then.parts if part.name.startswith("random ")]
    lost += [
        f"the random generator of {name[7:]}"
        for name in generators
        if name not in unseeded and _part(first, name) != _part(then, name)
    ]
    if not lost and _part(first, "buffers") != _part(then, "buffers"):
        lost.append("buffers")  # else another batch, or another draw, may have changed them since
    return lost


def _first(then: Moment, first: Moment) -> str:
    for x, y in zip(then.parts, first.parts, strict=False):
        if x.name.startswith("random "):
            continue
        if x.name != y.name or x.digest != y.digest:
            return x.name
    return ""


def _part(moment: Moment, name: str) -> str:
    return next((part.digest for part in moment.parts if part.name == name), "")
