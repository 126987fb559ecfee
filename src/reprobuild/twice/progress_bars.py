"""A line that is drawn again and again after a carriage return, such as a progress bar. Pure.

Which states of a bar are shown depends on the time that steps take, and so does their content: tqdm shows a
new loss beside an old count. So states are compared by their progress, and listed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_PROGRESS = re.compile(r"(?<![\d.])(\d+)\s*(?:/\s*(\d+)|%|it\b)")
_UP = "\x1b[A"
_METER = re.compile(r"\[(?:\d+:)?\d+:\d\d")
"""Where tqdm begins to tell times; what comes after them may be a result of any form."""
_BEFORE_TEXT = re.compile(r"([^\r]*\|\s*(\d+)/(\d+) \[[^\[\]]*\])(?=[^\s\[]|$)")
"""A bar at which other text was printed without a new line, as a log does."""
_RATE = re.compile(
    r"(?:[\d.]+|\?)\s*[kMG]?(?:[^\W\d_]+/s(?:ec(?:ond)?)?(?![^\W\d_])|s/ ?[^\W\d_]+)|\d+:\d\d(?::\d\d)?"
    r"|[\d.]+ ?(?:ms|s|secs?|seconds?|mins?|h)(?![^\W\d_])"
)
"""A speed or a duration, which nothing else explains in a state that was drawn over."""


@dataclass(frozen=True, slots=True)
class Redrawn:
    """A line's states, the last of which stays."""

    last: str
    bars: dict[tuple[int, str, str], str] = field(default_factory=dict)
    """By the pass, the text before the progress, and the progress, which may be of several things: the last
    state that has them.
    """
    others: list[str] = field(default_factory=list)
    """States that show no progress, in their order."""

    before_text: str = ""
    """The state at which other text was printed."""

    @property
    def progress(self) -> tuple[str, ...]:
        """How far that state was."""
        bar = _BEFORE_TEXT.match(self.before_text)
        return bar.groups()[1:] if bar else ()

    @property
    def passes(self) -> int:
        """How often the progress began anew."""
        return max((key[0] for key in self.bars), default=0)


def redrawn(line: str) -> Redrawn:
    """Return the states of a line; those with no number but speeds and durations do not count."""
    *states, last = line.rstrip("\r").split("\r")
    if last.endswith(_UP):  # it is drawn over as well, by the bar that has this one in it
        states, last = [*states, last.removesuffix(_UP)], ""
    if (
        (bar := _BEFORE_TEXT.match(last)) and bar.end() < len(last) and int(bar[2]) <= int(bar[3])
    ):  # it is drawn again below
        states, last = [*states, bar[0]], last[bar.end() :]
    found = Redrawn(last, before_text=bar[0] if bar and states[-1:] == [bar[0]] else "")
    number, before = 0, -1.0
    for state in states:
        matches = [*_PROGRESS.finditer(state)]
        if not matches:
            if any(map(str.isdigit, _RATE.sub("", state))):
                found.others.append(state)
            continue
        meter = _METER.search(state)
        told = [each for each in matches if meter and each.start() < meter.start()] or matches[:1]
        at = int(next((each for each in reversed(told) if each[2]), told[0])[1])
        number += at < before
        before = at
        label = re.sub(r"\s+", " ", state[: matches[0].start()]).strip()
        found.bars[number, label, " ".join(each[0] for each in told)] = state
    return found


def common(one: Redrawn, other: Redrawn) -> list[tuple[str, str]]:
    """Return the states of two lines side by side, without speeds and durations."""
    if one.passes != other.passes:
        return []
    return [
        (_RATE.sub("", state), _RATE.sub("", other.bars[key]))
        for key, state in one.bars.items()
        if key in other.bars
    ]
