"""What the measured numbers of a run are in binary files, byte by byte. Pure."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from datetime import datetime, timedelta

from .evidence import EXACT, Evidence
from .pickle_structure import date_of
from .text_tokens import digits

SPANS = (b"\x8c\x02m8", b"X\x02\0\0\0m8", b"<m8[", b"timedelta64")
"""How pickles, with the length before it, arrays and tables name types of durations."""
_LEAST_SPAN = 1e-3
"""Seconds: of a shorter one the microseconds may be a count."""
_MICRO = timedelta(microseconds=1)
_LATEST = 4e15
"""Microseconds since 1970, in the year 2096."""


def measured_words(evidence: Evidence, *, has_spans: bool) -> dict[bytes, str]:
    """Return the bytes of each measured number, with how it is written; of each only the first.

    ``has_spans``: also those of durations between two dates, which other whole numbers may be like.
    """
    found: dict[bytes, str] = {}
    for word, told in _words(evidence, has_spans=has_spans):
        found.setdefault(word, told)
    return found


def _words(evidence: Evidence, *, has_spans: bool) -> Iterator[tuple[bytes, str]]:
    for item in evidence.items:
        value = item.value
        if item.site[0] == "moment":
            yield from _of_moment(float(value), evidence)
        elif item.site[0] == "span" and has_spans and float(value) >= _LEAST_SPAN:
            span = timedelta(seconds=float(value))
            for unit in (1, 1000):  # in microseconds, or nanoseconds
                yield struct.pack("<q", round(span / _MICRO) * unit), f"span {span}"
        if isinstance(value, str) or digits(repr(value)) < EXACT:
            continue
        yield struct.pack("<d", value), f"double {value!r}"
        yield struct.pack(">d", value), f"reversed double {value!r}"
        if value.is_integer() and abs(value) < 1 << 53:
            yield struct.pack("<q", int(value)), f"whole {int(value)}"
    names = evidence.names
    for number in (*names.get("process numbers", ()), *names.get("ports", ())):
        if number.isdecimal() and 999 < int(number) < 1 << 31:
            yield struct.pack("<q", int(number)), f"whole {number}"
            # As pandas has it in a column where some are missing.
            yield struct.pack("<d", float(number)), f"double {float(number)}"


def _of_moment(seconds: float, evidence: Evidence) -> Iterator[tuple[bytes, str]]:
    """Yield what a date that the program asked for is pickled as."""
    for zone in evidence.zones:
        micro = round((seconds + zone) * 1e6)
        if 0 <= micro < _LATEST:
            moment = datetime(1970, 1, 1) + timedelta(microseconds=micro)  # noqa: DTZ001 -- as it is pickled
            state = moment.__reduce__()[1][0]
            if isinstance(state, bytes):
                told = f"moment {date_of(state)}"
                yield state, told
                for unit, name in ((1, "micro"), (1000, "nano")):  # as NumPy and pandas have it
                    yield struct.pack("<q", unit * micro), f"{told} in {name}seconds"
