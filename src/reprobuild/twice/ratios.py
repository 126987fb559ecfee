"""Numbers made of times that stand beside them: a share of the whole, a speedup, a sum of equal ones. Pure.

A ratio of two times is as large by any clock, so that it looks like a result. In each run it has to be what
two times of that run's text make, with clocks as they are and with faster ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from math import inf, prod

Bounds = tuple[float, float]
"""What a printed number is at least and at most."""
MOST = 96
"""Times of a text that are looked at."""
_SCALES = (1.0, 100.0)
"""A part of one, and of a hundred."""
_BY_CHANCE = 1e-3
"""How many pairs of times may make the numbers by chance."""


def is_ratio(numbers: Sequence[Bounds], times: Sequence[Sequence[Bounds]]) -> bool:
    """Return whether in each run a number is the ratio of the same two times, and hardly so by chance.

    ``numbers``: the number in each run. ``times``: for each time its value in each run.
    """
    widths = [2 * (high - low) / (high + low) if low > 0 else inf for low, high in numbers]
    some = [each for each in times[:MOST] if all(low > 0 for low, _ in each)]
    pairs = len(_SCALES) * len(some) * (len(some) - 1)
    return any(
        pairs * _chance(numbers, [width + more for width, more in zip(widths, wider, strict=True)])
        < _BY_CHANCE
        for wider in _made_by(numbers, some)
    )


def is_multiple(numbers: Sequence[Bounds], known: Sequence[Sequence[Bounds]]) -> bool:
    """Return whether in each run a number is as many times one of some numbers, and hardly so by chance.

    ``known``: for each of them its value in each run, which has to differ.
    """
    return any(
        len(known)
        * _chance(numbers, [inf, *(2 * (most - least) / (most + least) for least, most in factors[1:])])
        < _BY_CHANCE
        and max(least for least, _ in factors) <= min(most for _, most in factors)
        for values in known
        if all(low > 0 for low, _ in (*values, *numbers))
        for factors in [[(a[0] / b[1], a[1] / b[0]) for a, b in zip(numbers, values, strict=True)]]
    )


def _chance(numbers: Sequence[Bounds], widths: Sequence[float]) -> float:
    """Return how likely it is that what is as wide as that in each run holds the number by chance.

    In the first run it could be anything. In the others it may be near for another reason, as a result is
    that hardly varies: then it counts how far these numbers are apart.
    """
    middles = [(low + high) / 2 for low, high in numbers]
    apart = (max(middles) - min(middles)) / max(middles)
    return prod([min(1.0, widths[0]), *(min(1.0, width / apart) if apart else 1.0 for width in widths[1:])])


def _made_by(numbers: Sequence[Bounds], times: Sequence[Sequence[Bounds]]) -> Iterator[list[float]]:
    """Yield for each pair of times that makes the numbers how wide their ratio is in each run."""
    for part in times:
        for whole in times:
            if part is whole:
                continue
            for scale in _SCALES:
                made = ((scale * a[0] / b[1], scale * a[1] / b[0]) for a, b in zip(part, whole, strict=True))
                held = [
                    2 * (most - least) / (most + least)
                    for _, (least, most) in takewhile(_meet, zip(numbers, made, strict=True))
                ]
                if len(held) == len(numbers):
                    yield held


def _meet(pair: tuple[Bounds, Bounds]) -> bool:
    (low, high), (least, most) = pair
    return low <= most and least <= high
