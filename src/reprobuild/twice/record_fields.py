"""Fields of a record, which is untrusted: each of its type and no longer than it may be, or a ValueError."""

from __future__ import annotations

import base64
import binascii
import re
import struct
from typing import Any

LONGEST = 64 << 20
"""Bytes of a line."""
_LONGEST_TIME = 1e9
"""Seconds: 31 years."""
_HEX = re.compile(r"[0-9a-f]{0,64}")


def text(value: Any, most: int = 200) -> str:
    """Return a text. Raises ValueError."""
    if not isinstance(value, str) or len(value) > most:
        raise ValueError("not a string, or too long")
    return value


def digest(value: Any) -> str:
    """Return a digest, which may be empty. Raises ValueError."""
    if not isinstance(value, str) or _HEX.fullmatch(value) is None:
        raise ValueError("not a digest")
    return value


def whole(value: Any) -> int:
    """Return a whole number. Raises ValueError."""
    if type(value) is not int or not -(2**62) < value < 2**62:
        raise ValueError("not a number")
    return value


def truth(value: Any) -> bool:
    """Return a truth value. Raises ValueError."""
    if type(value) is not bool:
        raise ValueError("expected true or false")
    return value


def items(value: Any, most: int) -> list[Any]:
    """Return a list. Raises ValueError."""
    if not isinstance(value, list) or len(value) > most:
        raise ValueError("not a list, or too long")
    return value


def binary(value: Any) -> bytes:
    """Return bytes of base64. Raises ValueError."""
    try:
        return base64.b64decode(text(value, LONGEST), validate=True)
    except binascii.Error:
        raise ValueError("expected base64") from None


def floats(value: Any) -> tuple[float, ...]:
    """Return numbers of 64 bits of base64. Raises ValueError."""
    data = binary(value)
    if len(data) % 8:
        raise ValueError("values are cut short")
    return struct.unpack(f"<{len(data) // 8}d", data)


def seconds(value: Any) -> float:
    """Return a time. Raises ValueError."""
    if type(value) not in (int, float) or not abs(value) < _LONGEST_TIME:  # nor is NaN
        raise ValueError("not a time")
    return float(value)
