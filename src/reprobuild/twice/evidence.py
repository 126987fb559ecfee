"""Read a run's recorded clocks, process numbers, random names and addresses. Untrusted."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import RepeatError
from ..host.home import open_regular
from . import evidence_limits as limits
from .derived_items import Item, SiteKey, of_minutes, spans, together, windows
from .library_formats import told_contents

FORMAT = 3
MOST_BYTES = 256 << 20
"""Of all files of a run together."""
MOST_FILES = 4096
SHORTEST = 6
"""Characters of a part of a drawn name that are recognized."""
EXACT = 8
"""Digits from which a number is that very one that was measured."""
FEW = 16
"""Values of a place, up to which one number is recognized as one of them, whatever else the text has."""
_SHORTEST_DECIMAL = 12
"""Digits of a part of a drawn name's number."""
_POOL_WORKER = re.compile(r"[A-Za-z]{0,20}PoolWorker-\d{1,9}")
_OF_POOL = 4
"""Digits of the number of a pool's process from which it is recognized as one of any of them."""
_ROUNDED = 1e-10
"""Largest deviation of a sum that was computed in another order."""
_MOST_CUT_OFF = 1000
_LONGEST_MESSAGE = 2000
"""Characters of a message that the recorder keeps."""
_MARKED = re.compile("\x02(\x04?)([^\x02\x03]*)\x03")
"""A measured number in a message, as the recorder keeps it, and whether it may be another number."""
_NUMERAL = re.compile(r"\d+(?:\.\d+)?")
MAYBE = "maybe "
_WHOLE = (
    *("process numbers", "parents' process numbers", "thread numbers"),
    *("ports", "clients' ports", "drawn words"),
)
"""Kinds of which no part is recognized: one word of a name may be a result."""
_BY_TURN = ("uuids", "drawn names", "drawn words", "temporary names")
"""Kinds that a main thread draws in the same order in each run."""
_MOST_SHORT = 100
"""UUIDs of a run of which the first digits alone are recognized."""
_FEW_DIGITS = re.compile(r"[0-9a-f]{4,5}")
_OF_WORDS = re.compile(r"[A-Za-z]+(?:[-_ ][A-Za-z]+)+")
_HASH = "hash of "
"""How the kind of a hash of a text with a time begins; a digest of the rest of that text follows."""
_THREADS = "threads' "
"""Before the kind of a name that another thread than the main one drew."""


@dataclass(frozen=True)
class Evidence:
    """Values of one run that differ in every run, such as clock times and drawn names."""

    began: float = 0.0
    ended: float = 0.0
    """The clock time of the run."""
    zones: tuple[int, ...] = (0,)
    """What local time may be ahead of UTC, in seconds."""
    memory: tuple[tuple[int, int], ...] = ()
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    items: Sequence[Item] = ()
    several: bool = False
    """Whether processes ran side by side that the program made itself, as multiprocessing does."""
    messages: Mapping[str, Sequence[tuple[int, int, Item]]] = field(default_factory=dict)
    """Messages of a log → where measured numbers stand in them: from, to, and which one it is."""
    alone: frozenset[str] = frozenset()
    """The streams that one process at most wrote to, as far as Python's own writing tells."""
    contents: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Lines of files that only their library reads, by SHA-256."""

    @property
    def works_beside(self) -> bool:
        """Whether other processes or threads of the program were at work: what ends first may vary."""
        return self.several or any(kind == "pool workers" or kind.startswith(_THREADS) for kind in self.names)

    @cached_property
    def texts(self) -> Mapping[str, list[Item]]:
        """Items by the text that a measured number was written as."""
        found: dict[str, list[Item]] = defaultdict(list)
        for item in self.items:
            if isinstance(item.value, str):
                found[item.value.strip().lstrip("+-").rstrip("%")].append(item)
        return found

    def written_in(self, line: str) -> list[tuple[int, int, Item]]:
        """Return where measured numbers stand in a line that ends with a message of a log."""
        if self.messages:
            for start in range(max(0, len(line) - _LONGEST_MESSAGE), len(line)):
                if (spans := self.messages.get(line[start:])) is not None:
                    return [(start + begin, start + end, item) for begin, end, item in spans]
        return []

    @cached_property
    def _sorted_texts(self) -> list[str]:
        return sorted(self.texts)

    def cut_off(self, text: str) -> list[Item]:
        """Return the items whose text begins like this, as one does that a program cuts off."""
        found, start = [], bisect_left(self._sorted_texts, text)
        for each in self._sorted_texts[start : start + _MOST_CUT_OFF]:
            if not each.startswith(text):
                break
            found += self.texts[each]
        return found

    @cached_property
    def _values(self) -> tuple[list[float], list[Item]]:
        items = [item for item in self.items if not isinstance(item.value, str)]
        items.sort(key=lambda item: abs(float(item.value)))
        return [abs(float(item.value)) for item in items], items

    @cached_property
    def _parts(self) -> tuple[list[float], list[Item]]:
        items = sorted(windows(self.items), key=lambda item: float(item.value))
        return [float(item.value) for item in items], items

    def between(self, low: float, high: float) -> list[Item]:
        """Return the items whose value is in that range, without regard to its sign."""
        return _in_range(self._values, low, high)

    @cached_property
    def _written(self) -> Mapping[int, list[float]]:
        found: dict[int, list[float]] = defaultdict(list)
        for text, _ in {(item.value, item.at) for item in self.items if isinstance(item.value, str)}:
            if (number := _number(text)) is not None:
                found[decimals(text)].append(abs(number))
        return {many: sorted(numbers) for many, numbers in found.items()}

    def alike_in_size(self, texts: Sequence[str], *, written: bool | None) -> int:
        """Return how many numbers of the run are from half of the smaller to twice the larger of a pair.

        ``written``: those that were written, with as many decimals (True) or with any (False); one that
        several places wrote at the same turn is counted once. None: those that were computed.
        """
        values = [float(text.replace(",", "")) for text in texts]
        low, high = min(values) / 2, max(values) * 2
        many = decimals(texts[0])
        lists = [each for key, each in self._written.items() if not written or key == many]
        return sum(
            bisect_right(each, high) - bisect_left(each, low)
            for each in (lists if written is not None else [self._values[0]])
        )

    def made_of_some(self, low: float, high: float) -> list[Item]:
        """Return the sums, means and deviations of values of a place in a row that are in that range."""
        return _in_range(self._parts, low * (1 - _ROUNDED), high * (1 + _ROUNDED))

    @cached_property
    def short_uuids(self) -> Sequence[str]:
        """The first digits of drawn UUIDs, as many as a program may take for a short name, in their order."""
        return [uuid[:5] for uuid in self.names.get("uuids", ())[:_MOST_SHORT]]

    @cached_property
    def drawn_names(self) -> Sequence[str]:
        """All names that were drawn, those of two words last."""
        return [*self.names.get("drawn names", ()), *self.names.get("drawn words", ())]

    @cached_property
    def phrases(self) -> re.Pattern[str] | None:
        """All drawn names of several words, such as calm-owl-3, and those of a few digits, such as d1ce."""
        given = (*self.drawn_names, *self.names.get("pool workers", ()))
        names = {name for name in given if len(re.findall(r"\w+", name)) > 1 or _FEW_DIGITS.fullmatch(name)}
        names |= {*self.short_uuids}
        longest = sorted(names, key=lambda name: (-len(name), name))
        return re.compile(rf"(?:{'|'.join(map(re.escape, longest))})(?![^\W_])") if names else None

    def without_words(self, line: str) -> str:
        """Return a line with the drawn names of words alone, as evil_euler is one, replaced by one word."""
        return self._words.sub("name", line) if self._words is not None else line

    @cached_property
    def _words(self) -> re.Pattern[str] | None:
        names = [name for name in self.drawn_names if _OF_WORDS.fullmatch(name)]
        longest = sorted({*names}, key=lambda name: (-len(name), name))
        return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest))})(?!\w)") if names else None

    @cached_property
    def parts(self) -> Mapping[str, tuple[str, int]]:
        """Each drawn name and its beginnings and ends → its kind and number among those."""
        found: dict[str, tuple[str, int]] = {}
        # Those last of which a UUID may be made.
        for kind, names in sorted(self.names.items(), key=lambda each: each[0] == "drawn numbers"):
            drawn = kind.removeprefix(_THREADS)
            # Which thread draws first, and which worker gets a task, is not the program's choice, nor how
            # many numbers are drawn until one fits. A hash of a text with a time is known by the rest of it.
            by_turn = drawn == kind and kind not in ("pool workers", "drawn numbers")
            by_turn = by_turn and not kind.startswith(_HASH)
            for at, name in enumerate(names):
                whole, number = name.replace("-", "") if drawn == "uuids" else name, at if by_turn else 0
                if kind == "pool workers":
                    found.setdefault(name, (kind, number))
                    continue
                if kind in _WHOLE:
                    found.setdefault(name, (kind, number))
                    continue
                if kind == "drawn numbers":  # with any number of zeros before it
                    for length in range(max(SHORTEST, len(name.lstrip("0"))), len(name) + 1):
                        found.setdefault(name[-length:], (kind, number))
                    continue
                for length in range(SHORTEST, len(whole) + 1):
                    found.setdefault(whole[:length], (kind, number))
                    found.setdefault(whole[-length:], (kind, number))
                if drawn == "uuids" and re.fullmatch("[0-9a-f]{32}", whole):
                    decimal = str(int(whole, 16))
                    for length in range(_SHORTEST_DECIMAL, len(decimal) + 1):
                        found.setdefault(decimal[:length], (kind, number))
                        found.setdefault(decimal[-length:], (kind, number))
        return found

    @cached_property
    def millionths(self) -> frozenset[str]:
        """What dates that the program asked for have after the second."""
        moments = [float(item.value) for item in self.items if item.site[0] == "moment"]
        return frozenset(f"{round(moment % 1 * 1e6):06d}" for moment in moments)

    @cached_property
    def drawn(self) -> str:
        """All that was drawn character by character."""
        return "\n".join(self.names.get("drawn names", ()))


def read_evidence(folder: Path, began: float, ended: float) -> Evidence:
    """Return what the processes of a run kept. Raises `RepeatError`."""
    zones, memory = {0}, list[tuple[int, int]]()
    names: dict[str, list[str]] = defaultdict(list)
    values: dict[SiteKey, list[Item]] = defaultdict(list)
    left, several, writers = MOST_BYTES, False, list[dict[str, Any]]()
    tables = list[tuple[list[str], str, dict[str, Any]]]()
    for path in sorted(folder.glob("*.evidence"))[:MOST_FILES]:
        with _readable(path):
            table, size = _table(path, left)
            left -= size
            worker, name, *_ = table["process"]
            writers.append(table["writer"])
            several |= bool(worker) or name != "MainProcess" or bool(table["forked"])
            tables.append(([str(word) for word in table["process"]], path.name, table))
    # The order in which processes end is no run's own: theirs is that of their names. The workers of a pool
    # come last, since one that is killed may have kept nothing.
    tables.sort(key=lambda each: (each[0][1] != "MainProcess", each[:2]))
    for process, (_, name, table) in enumerate(tables):
        with _readable(folder / name):
            zones.add(limits.zone(table["zone"]))
            memory += map(limits.address_range, table["memory"])
            of_pool = _POOL_WORKER.fullmatch(process_name := str(table["process"][1]))
            for kind, given in table["names"].items():
                told = [str(name)[:200] for name in given]
                names[_kind_of(str(kind)[:40], told, is_worker=process_name != "MainProcess")] += told
            names["pool workers"] += [process_name] if of_pool else []
            for key, items in _sites(table["sites"], process):
                values[key] += items
    messages = _messages([values.pop(key) for key in [*values] if key[0] in ("message", "printed")])
    items = [item for each in values.values() for item in (*each, *together(each))]
    items += spans(values)
    items += of_minutes(values)
    with _readable(folder):
        alone, contents = _alone(writers), told_contents(folder)
    return Evidence(
        began=began, ended=ended, zones=tuple(sorted(zones)), memory=tuple(memory),
        names=limits.bounded_names(names), items=items, messages=messages,
        several=several, alone=alone, contents=contents,
    )  # fmt: skip


def _kind_of(kind: str, names: Sequence[str], *, is_worker: bool) -> str:
    """Return the kind of some names of a process; of one that others start, none is known by its turn.

    Which of them gets a task is not the program's choice.
    """
    if is_worker and kind in _BY_TURN:
        return f"{_THREADS}{kind}"
    # A short number may be a result, too.
    of_pool = is_worker and kind == "process numbers" and all(len(name) >= _OF_POOL for name in names)
    return "pool workers" if of_pool else kind


def _alone(writers: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """Return the streams that one process at most wrote to; none where a forked process kept no evidence."""
    with_evidence = sum(bool(each["child"]) for each in writers)
    if sum(int(each["forks"]) for each in writers) > with_evidence:
        return frozenset()
    counts = Counter(str(name) for each in writers for name in each["wrote"])
    return frozenset(name for name in ("stdout", "stderr") if counts[name] < 2)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise RepeatError(
            f"the records of a run cannot be read: {path.name}: {error}",
            hint="a program that writes into /run/reprobuild/records itself cannot be compared",
        ) from None


def _table(path: Path, most: int) -> tuple[dict[str, Any], int]:
    """Return what a file holds, and its size. Raises `ValueError`."""
    if path.is_symlink():  # it could lead out of the folder
        raise ValueError("it is a link")
    with open_regular(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"a run's are larger than {MOST_BYTES >> 20} MiB")
    table = limits.load_values(data)
    if table["format"] != FORMAT:
        raise ValueError("it has another format")
    return table, len(data)


def _sites(sites: Any, process: int) -> Iterator[tuple[SiteKey, list[Item]]]:
    seen: dict[tuple[str, str, int], int] = defaultdict(int)
    for kind, file, line, count, first, last in sites:
        place = (str(kind), str(file), int(line))
        key = (*place, seen[place])
        seen[place] += 1
        whole = limits.count(count)
        items = []
        for at, value in [*enumerate(first), *enumerate(last, whole - len(last))]:
            kept = limits.measured(value)
            if kept is not None:
                items.append(Item(key, kept, limits.count(at), limits.count(whole - 1 - at), process))
        yield key, items


def _messages(sites: Iterable[Sequence[Item]]) -> dict[str, list[tuple[int, int, Item]]]:
    """Return each line of each kept message, with where its measured numbers stand.

    One that may be another number is of a place that begins with `MAYBE`.
    """
    found: dict[str, list[tuple[int, int, Item]]] = defaultdict(list)
    for items in sites:
        for item in items:
            kind, file, at, which = item.site
            for line in str(item.value).split("\n"):
                spans, plain, end = [], "", 0
                for match in _MARKED.finditer(line):
                    plain += line[end : match.start()]
                    number = len(_NUMERAL.findall(plain))
                    site = (f"{MAYBE if match[1] else ''}{kind} {number}", file, at, which)
                    spans.append((len(plain), len(plain) + len(match[2]), replace(item, site=site)))
                    plain, end = plain + match[2], match.end()
                if spans:
                    found[plain + line[end:]] += spans
    return found


def decimals(text: str) -> int:
    """Return how many digits a number has behind the point."""
    return len(re.split("[eE%]", text.strip())[0].partition(".")[2])


def _number(text: str) -> float | None:
    try:
        number = float(text.strip().rstrip("%").replace(",", ""))
    except ValueError:  # such as 0:01:02
        return None
    return number if math.isfinite(number) else None


def _in_range(table: tuple[list[float], list[Item]], low: float, high: float) -> list[Item]:
    values, items = table
    return items[bisect_left(values, low) : bisect_right(values, high)]
