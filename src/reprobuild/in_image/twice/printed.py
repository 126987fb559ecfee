"""Notes where in a printed line a measured number stands, so that a result beside it is not taken for one.

A number is written as text first, and the text is printed soon after. If a line has the texts of measured
numbers that came since the line before, and each as often as it came, they are these; one of many digits may
have gone into a file. What was printed in another way is not noted here.
"""

from __future__ import annotations

import sys

from . import measured

TYPE_CHECKING = False  # importing typing costs milliseconds at the start of every process
if TYPE_CHECKING:
    from typing import Any

    from .watching import Watcher

MARKS = "\x02\x03"
"""What a measured number of a kept line stands between."""
MAYBE = "\x04"
"""What comes before one that may be another number."""
LONGEST = 2000
"""Characters of a line that is kept."""
_SURE = 4
"""Digits of a line's measured numbers from which they are no others by chance, whatever the words say."""
_AFTER = r"(?![0-9A-Za-z]*[0-9]|[.,][0-9])"


class _Line:
    """The line that a stream is at, and the texts of measured numbers that came since it began."""

    def __init__(self) -> None:
        self.text = ""
        self.recent: list[tuple[str, str, int]] = []

    def add(self, text: str, recent: list[tuple[str, str, int]]) -> None:
        """Take in what is written, and the texts of measured numbers that came before it."""
        self.text += text
        self.recent += recent
        if "\r" in text or MARKS[0] in text or len(self.text) > 10 * LONGEST:
            self.text, self.recent = "", []
            return
        if "\n" not in text:
            return
        whole, _, self.text = self.text.rpartition("\n")
        given, self.recent = self.recent, []
        found = _places(whole, [each[0] for each in given]) if given else []
        start = 0
        for line in whole.split("\n") if found else ():
            inside = [(a - start, b - start, m) for a, b, m in found if start <= a and b <= start + len(line)]
            _note(line, inside, given[0][1:])
            start += len(line) + 1


def _places(text: str, given: list[str]) -> list[tuple[int, int, bool]]:
    """Return where texts stand in one that has each short one as often as it is given, or more often: then
    each of these may be another number, which the last word of each place says. Else nothing.
    """
    import re  # noqa: PLC0415 -- it would cost each process milliseconds at its start

    found: list[tuple[int, int, bool]] = []
    for each in set(given):
        pattern = re.compile(rf"(?<![0-9A-Za-z.]){re.escape(each)}{_AFTER}")
        matches = [match.span() for match in pattern.finditer(text)]
        if not matches and (
            _digits(each) >= _SURE or re.search(rf"[0-9][.,]{re.escape(each)}{_AFTER}", text)
        ):
            continue  # written to a file, or the thousandths of a time of day
        if len(matches) < given.count(each):
            return []
        found += [(*span, len(matches) > given.count(each)) for span in matches]
    found.sort()
    ends = [0, *(end for _, end, _ in found)]
    return found if all(end <= begin for end, (begin, *_) in zip(ends, found)) else []


def _note(line: str, spans: list[tuple[int, int, bool]], place: tuple[str, int]) -> None:
    if not any(not maybe for *_, maybe in spans) or len(line) > LONGEST:
        return
    digits = sum(_digits(line[a:b]) for a, b, maybe in spans if not maybe)
    marked, end = [], 0
    for a, b, maybe in spans:
        marked += [line[end:a], MARKS[0], MAYBE if maybe else "", line[a:b], MARKS[1]]
        end = b
    kind = "message" if digits >= _SURE else "printed"
    key = (f"{place[0]}:{place[1]}", 0, kind)
    measured.note_at(key, kind, "".join([*marked, line[end:]]), place[0], place[1])


def _digits(text: str) -> int:
    return sum(each.isdigit() for each in text.lstrip("0.+-"))


def _watch(name: str) -> None:
    stream = getattr(sys, name)
    inner = getattr(stream, "write", None)
    if inner is None:
        return
    line = _Line()

    def write(text: Any) -> Any:
        if type(text) is str and (measured.recent or line.recent or line.text or text[-1:] != "\n"):
            recent = list(measured.recent)
            measured.recent.clear()
            line.add(text, recent)
        return inner(text)

    try:
        stream.write = write
    except AttributeError:  # it takes no attributes: its lines are not noted
        return


def _scikit_learn(module: Any) -> None:
    """It writes times by ``%``."""
    _told(module, "_message_with_time", 2)


def _joblib(module: Any) -> None:
    _told(module, "short_format_time", 0)


def _told(module: Any, name: str, at: int) -> None:
    import functools  # noqa: PLC0415 -- joblib has imported both
    import re  # noqa: PLC0415 -- as above

    inner = getattr(module, name, None)
    if inner is None:
        return

    @functools.wraps(inner)
    def written(*given: Any) -> Any:
        text = inner(*given)
        if len(given) > at and measured.plain(given[at]) is not None:
            for number in re.findall(r"[0-9]+\.[0-9]+", str(text))[-1:]:
                measured.note("text", number)
        return text

    setattr(module, name, written)


def install(watcher: Watcher) -> None:
    """Watch both streams; `writers` has to watch them before."""
    for name in ("stdout", "stderr"):
        _watch(name)
    watcher.after("joblib.logger", _joblib)
    watcher.after("sklearn.utils._user_interface", _scikit_learn)
