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
_KEPT = 512
_SHORTEST_DECIMAL = 12
"""Digits of a part of a drawn name's number."""
_POOL_WORKER = re.compile(r"[A-Za-z]{0,20}PoolWorker-\d{1,9}")
_OF_POOL = 4
"""Digits of the number of a pool's process from which it is recognized as one of any of them."""
_LONGEST = 1e8
"""Seconds of a duration that is written in hours, minutes and seconds."""
_LONGEST_WINDOW = 64
"""The most values at a place for which runs of consecutive ones are combined."""
_MOST_WINDOWS = 200_000
_ROUNDED = 1e-10
"""Largest deviation of a sum that was computed in another order."""
_MOST_MOMENTS = 64
"""Places that asked for the date, of which the differences are known."""
_MOST_SPANS = 100_000
"""Such differences, of all places together."""
_MOST_CUT_OFF = 1000
_LONGEST_MESSAGE = 2000
"""Characters of a message that the recorder keeps."""
_MARKED = re.compile("\x02([^\x02\x03]*)\x03")
"""A measured number in a message, as the recorder keeps it."""

SiteKey = tuple[str, str, int, int]
"""What a place gives (text, value, whole), its file, its line, and which of this line's places it is."""


@dataclass(frozen=True, slots=True)
class Item:
    """One value of a place."""

    site: SiteKey
    value: float | str
    at: int
    """Its number, from the first on."""
    left: int
    """How many came after it."""
    process: int = 0
    """Which process of its run."""


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
        items = sorted(_windows(self.items), key=lambda item: float(item.value))
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

    def count(self, low: float, high: float) -> int:
        """Return how many items have a value in that range."""
        return bisect_right(self._values[0], high) - bisect_left(self._values[0], low)

    def count_written(self, low: float, high: float, many: int | None) -> int:
        """Return how many numbers in that range were written, with so many decimals; None: with any.

        One that several places wrote at the same turn is counted once.
        """
        return sum(
            bisect_right(values, high) - bisect_left(values, low)
            for each, values in self._written.items()
            if many in (each, None)
        )

    def made_of_some(self, low: float, high: float) -> list[Item]:
        """Return the sums, means and deviations of values of a place in a row that are in that range."""
        return _in_range(self._parts, low * (1 - _ROUNDED), high * (1 + _ROUNDED))

    @cached_property
    def phrases(self) -> re.Pattern[str] | None:
        """All drawn names of several words, such as calm-owl-3."""
        given = (*self.names.get("drawn names", ()), *self.names.get("pool workers", ()))
        names = {name for name in given if len(re.findall(r"\w+", name)) > 1}
        longest = sorted(names, key=lambda name: (-len(name), name))
        return re.compile(rf"(?:{'|'.join(map(re.escape, longest))})(?![^\W_])") if names else None

    @cached_property
    def parts(self) -> Mapping[str, tuple[str, int]]:
        """Each drawn name and its beginnings and ends → its kind and number among those."""
        found: dict[str, tuple[str, int]] = {}
        for kind, names in self.names.items():
            for number, name in enumerate(names):
                whole = name.replace("-", "") if kind == "uuids" else name
                if kind == "pool workers":  # which of them gets a task is not the program's choice
                    found.setdefault(name, (kind, 0))
                    continue
                if kind in ("process numbers", "ports"):
                    found.setdefault(name, (kind, number))
                    continue
                for length in range(SHORTEST, len(whole) + 1):
                    found.setdefault(whole[:length], (kind, number))
                    found.setdefault(whole[-length:], (kind, number))
                if kind == "uuids" and re.fullmatch("[0-9a-f]{32}", whole):
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
                # A short number may be a result, too.
                if of_pool and kind == "process numbers" and all(len(name) >= _OF_POOL for name in told):
                    names["pool workers"] += told
                else:
                    names[str(kind)[:40]] += told
            names["pool workers"] += [process_name] if of_pool else []
            for key, items in _sites(table["sites"], process):
                values[key] += items
    messages = _messages([values.pop(key) for key in [*values] if key[0] == "message"])
    items = [item for each in values.values() for item in (*each, *_together(each))]
    items += _spans(values)
    items += _of_minutes(values)
    with _readable(folder):
        alone = _alone(writers)
    return Evidence(
        began=began, ended=ended, zones=tuple(sorted(zones)), memory=tuple(memory),
        names=limits.bounded_names(names), items=items, messages=messages,
        several=several, alone=alone,
    )  # fmt: skip


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
    """Return each line of each kept message, with where its measured numbers stand."""
    found: dict[str, list[tuple[int, int, Item]]] = defaultdict(list)
    for items in sites:
        for item in items:
            number = 0
            for line in str(item.value).split("\n"):
                spans, taken = [], 0
                for match in _MARKED.finditer(line):
                    begin = match.start() - taken
                    kind, file, at, which = item.site
                    site = (f"{kind} {number}", file, at, which)
                    spans.append((begin, begin + len(match[1]), replace(item, site=site)))
                    taken += 2
                    number += 1
                if spans:
                    found[_MARKED.sub(r"\1", line)] += spans
    return found


def _together(items: Sequence[Item]) -> list[Item]:
    """Return what is commonly made of several durations: their sum, mean, median, least and most."""
    numbers = [float(item.value) for item in items if not isinstance(item.value, str)]
    if not 1 < len(numbers) <= _KEPT or items[0].site[0] != "value":
        return []
    kind, file, line, which = items[0].site
    mean = math.fsum(numbers) / len(numbers)
    variance = math.fsum((number - mean) ** 2 for number in numbers)
    found = {
        "sum": math.fsum(numbers),
        "mean": mean,
        "median": sorted(numbers)[len(numbers) // 2],
        "least": min(numbers),
        "most": max(numbers),
        "deviation": math.sqrt(variance / len(numbers)),
        "sample deviation": math.sqrt(variance / (len(numbers) - 1)),
    }
    return [
        Item((f"{kind} {name}", file, line, which), value, 0, 0)
        for name, value in found.items()
        if math.isfinite(value)
    ]


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


def _windows(items: Sequence[Item]) -> Iterator[Item]:
    """Yield sums, means and deviations of consecutive values of a place, as over the folds of a search."""
    places: dict[tuple[SiteKey, int], list[float]] = defaultdict(list)
    for item in items:
        if item.site[0] == "value" and not isinstance(item.value, str):
            places[item.site, item.process].append(item.value)
    left = _MOST_WINDOWS
    for ((kind, file, line, which), process), numbers in places.items():
        count = len(numbers)
        if not 2 < count <= _LONGEST_WINDOW:
            continue
        left -= count * count
        if left < 0:
            return
        for size in range(2, count):
            for at in range(count - size + 1):
                window = numbers[at : at + size]
                mean = math.fsum(window) / size
                deviation = math.sqrt(math.fsum((number - mean) ** 2 for number in window) / size)
                for name, value in (("sum", size * mean), ("mean", mean), ("deviation", deviation)):
                    if math.isfinite(value) and value > 0:
                        site = (f"{kind} {name} of {size}", file, line, which)
                        yield Item(site, value, at, -1 - at, process)


def _spans(values: Mapping[SiteKey, Sequence[Item]]) -> Iterator[Item]:
    """Yield the durations between the dates that two places, or one place twice, asked for."""
    places: dict[int, dict[SiteKey, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for key in [key for key in values if key[0] == "moment"][:_MOST_MOMENTS]:
        for item in values[key]:
            places[item.process][key][item.at] = float(item.value)
    room = _MOST_SPANS
    for process, sites in places.items():
        for one, first in sites.items():
            for other, last in sites.items():
                if len(first) not in (1, len(last)) or len(last) > room:
                    continue
                _, file, line, which = other
                begun = {at: at - 1 if one == other else 0 if len(first) == 1 else at for at in last}
                # A date has microseconds. As a float of seconds since 1970 it is up to 0.12 of one off, and a
                # span next to where it is rounded would be printed as another number than it has here.
                spans = [(at, round(last[at] - first[begun[at]], 6)) for at in last if begun[at] in first]
                if any(span < 0 for _, span in spans):  # what comes before the other is no duration
                    continue
                room -= len(spans)
                for number, (_, span) in enumerate(spans):
                    left = len(spans) - 1 - number
                    for name, value in _in_units(span):
                        site = (name, f"{one[1:]} {file}", line, which)
                        yield Item(site, value, number, left, process)


def _in_units(span: float) -> Iterator[tuple[str, float]]:
    """Yield a duration as programs print it; it has whole microseconds."""
    micro = round(span * 1e6)
    yield "span", span
    yield "span in milliseconds", micro / 1000
    yield "span in microseconds", float(micro)
    yield "span in minutes", span / 60
    yield "span in hours", span / 3600
    yield "microseconds of a span", float(micro % 10**6)
    yield "milliseconds of a span", float(micro // 1000)
    yield "seconds of a span", float(micro // 10**6)


def _of_minutes(values: Mapping[SiteKey, Sequence[Item]]) -> Iterator[Item]:
    """Yield the hours, minutes and seconds of a duration that the program made whole first."""
    for (kind, file, line, which), items in values.items():
        numbers = [float(item.value) for item in items] if kind == "whole" else []
        if len(numbers) > _KEPT or not numbers or not 60 <= max(numbers) < _LONGEST:
            continue
        for item, number in zip(items, numbers, strict=True):
            for name, value in (
                ("seconds", number % 60),
                ("minutes", number // 60 % 60),
                ("whole minutes", number // 60),
                ("hours", number // 3600),
            ):
                yield replace(item, site=(f"{name} of a whole", file, line, which), value=value)
