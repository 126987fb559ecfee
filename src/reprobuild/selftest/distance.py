"""Distance of two values in units in the last place (ULP). Pure."""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Sequence

_WIDTHS = {"float64": ("q", 8), "float32": ("i", 4), "float16": ("h", 2), "bfloat16": ("h", 2)}
ENDLESS = 2**64
"""Distance between a number and a value that is not one."""


def ulp(one: float, other: float) -> int:
    """Return the distance of two values of torch: in float32 where both are such numbers, else in float64."""
    if math.isnan(one) or math.isnan(other):
        return 0 if math.isnan(one) and math.isnan(other) else ENDLESS
    kind = "float32" if _single(one) and _single(other) else "float64"
    letter = "f" if kind == "float32" else "d"
    return largest_ulp(struct.pack(letter, one), struct.pack(letter, other), kind) or 0


def of_values(one: Sequence[float], other: Sequence[float]) -> int | None:
    """Return the largest distance of two rows of values; None if there is nothing to compare."""
    if len(one) != len(other) or not one:
        return None
    return max(ulp(a, b) for a, b in zip(one, other, strict=True))


def largest_ulp(one: bytes, other: bytes, kind: str) -> int | None:
    """Return the largest distance between the values of two tensors, by their bytes; None for other types."""
    if kind not in _WIDTHS or len(one) != len(other):
        return None
    letter, width = _WIDTHS[kind]
    if len(one) % width:
        return None
    first, second = array(letter, one), array(letter, other)
    sign = 1 << (8 * width - 1)
    return max((_apart(a, b, sign) for a, b in zip(first, second, strict=True) if a != b), default=0)


def _apart(one: int, other: int, sign: int) -> int:
    # The bits of a float, read as an integer, count its neighbours; negative ones run the other way.
    return abs((one if one >= 0 else -(one + sign)) - (other if other >= 0 else -(other + sign)))


def _single(value: float) -> bool:
    try:
        return bool(struct.unpack("f", struct.pack("f", value))[0] == value)
    except OverflowError:
        return False
