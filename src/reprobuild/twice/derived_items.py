"""Measured numbers, and what programs commonly compute from them: sums, means, spans between dates. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

_LONGEST = 1e8
"""Seconds of a duration that is written in hours, minutes and seconds."""
_LONGEST_WINDOW = 64
"""The most values at a place for which runs of consecutive ones are combined."""
_MOST_WINDOWS = 200_000
_MOST_MOMENTS = 64
"""Places that asked for the date, of which the differences are known."""
_MOST_SPANS = 100_000
"""Such differences, of all places together."""
_KEPT = 512
_MOST_STEPS = 6

SiteKey = tuple[str, str, int, int]
"""What a place gives (text, value, whole), its file, its line, and which of this line's places it is."""


_RARER = (" of every ", " in milliseconds", " in microseconds")


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

    @property
    def turn(self) -> tuple[int, int]:
        """The process, and its number there."""
        return self.process, self.at

    @property
    def is_rarer(self) -> bool:
        """Whether it is one of many that are seldom made, of which some are like any short number."""
        return any(each in self.site[0] for each in _RARER) and not self.site[0].startswith("span in")


def together(items: Sequence[Item]) -> list[Item]:
    """Return what is commonly made of several durations: their sum, mean, median, least and most."""
    if not items or items[0].site[0] not in ("value", "span"):
        return []
    numbers = [float(item.value) for item in items if not isinstance(item.value, str)]
    if not 1 < len(numbers) <= _KEPT:
        return []
    kind, file, line, which = items[0].site
    found = dict(_every(numbers))
    mean = math.fsum(numbers) / len(numbers)
    variance = math.fsum((number - mean) ** 2 for number in numbers)
    found |= {
        "sum": math.fsum(numbers),
        "mean": mean,
        "median": sorted(numbers)[len(numbers) // 2],
        "least": min(numbers),
        "most": max(numbers),
        "deviation": math.sqrt(variance / len(numbers)),
        "sample deviation": math.sqrt(variance / (len(numbers) - 1)),
    }
    return [
        Item((f"{kind} {name}{unit}", file, line, which), times * value, 0, 0)
        for name, value in found.items()
        for unit, times in (("", 1.0), (" in milliseconds", 1e3), (" in microseconds", 1e6))
        if math.isfinite(value)
    ]


def _every(numbers: Sequence[float]) -> Iterator[tuple[str, float]]:
    """Yield what is made of every second value, every third and so on, where others stand in between."""
    for step in range(2, _MOST_STEPS + 1):
        for first in range(step if len(numbers) >= 2 * step else 0):
            some = numbers[first::step]
            yield f"sum of every {step} from {first}", math.fsum(some)
            yield f"mean of every {step} from {first}", math.fsum(some) / len(some)
            yield f"most of every {step} from {first}", max(some)


def windows(items: Sequence[Item]) -> Iterator[Item]:
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


def spans(values: Mapping[SiteKey, Sequence[Item]]) -> Iterator[Item]:
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
                if one == other:  # since the one before, and since the first, as a log says
                    ways = [
                        ("", {at: at - 1 for at in last}),
                        (" since the first", {at: 0 for at in last if at > 1}),
                    ]
                else:
                    ways = [("", {at: 0 if len(first) == 1 else at for at in last})]
                for way, begun in ways:
                    site = (f"{one[1:]} {other[1]}{way}", *other[2:])
                    found = [*_between(first, last, begun, site, process)]
                    room -= len(last)
                    yield from found
                    yield from together([item for item in found if item.site[0] == "span"])


def _between(
    first: Mapping[int, float],
    last: Mapping[int, float],
    begun: Mapping[int, int],
    site: tuple[str, int, int],
    process: int,
) -> Iterator[Item]:
    """Yield the spans from dates to later ones; none where one comes before the other."""
    # A date has microseconds. As a float of seconds since 1970 it is up to 0.12 of one off, and a
    # span next to where it is rounded would be printed as another number than it has here.
    found = [(at, round(last[at] - first[begun[at]], 6)) for at in begun if begun[at] in first]
    if any(span < 0 for _, span in found):
        return
    for number, (_, span) in enumerate(found):
        for name, value in _in_units(span):
            yield Item((name, *site), value, number, len(found) - 1 - number, process)


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


def of_minutes(values: Mapping[SiteKey, Sequence[Item]]) -> Iterator[Item]:
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
