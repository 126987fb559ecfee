"""TensorBoard's event files as lines of text, without the clock time that each record has. Untrusted bytes.

A record is the length of an event, its checksum, the event and a checksum; an event is a message of protobuf:
https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/util/event.proto
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

EVENTS = "events.out.tfevents"
NAME = re.compile(rf"(.*{re.escape(EVENTS)})(?:\.\d{{10}}\..*)?")
"""What torch and TensorFlow call them, with the time, the host and the process, and CatBoost without."""
MOST_LINES = 100_000
_MOST_EVENT = 64 << 20
_MOST_FIELDS = 100_000
"""Of a message. Two bytes are one, of which Python's objects take fifty times as much memory."""
_MOST_TEXT = 64 << 20
"""Characters of all lines."""
_LONGEST = 2000
"""Bytes of a field up to which it is shown as text."""
_TIME, _STEP, _SUMMARY = 1, 2, 5
_VALUE, _TAG, _SIMPLE = 1, 1, 2

_PICTURED = {byte: chr(0x2400 + byte) for byte in range(32)}
"""Control characters as signs without digits, which could be taken for a measured number."""
_PICTURED_ONLY = [chr(byte) for byte in range(32) if chr(byte) not in "\t\n\r"]
"""Control characters that no text has, but a message."""
_DEEPEST = 8
_ENTRY = re.compile(r"\d+: \(1: [^;()]*; 2[: ][^;]*\)$")
_PICTURES = frozenset(_PICTURED.values())

Field = tuple[int, int | bytes]
"""A number of a field, and what it holds."""


def event_lines(path: Path) -> tuple[str, ...] | None:
    """Return a line for each value of an event file; None if it is not one, or is truncated."""
    try:
        with path.open("rb") as file:
            lines = (line for event in _events(file) for line in _lines(event))
            return bounded(lines, "values", MOST_LINES)
    except (OSError, ValueError, struct.error):
        return None


def bounded(lines: Iterable[str], what: str, most: int) -> tuple[str, ...]:
    """Return some lines, and those beyond a number, or beyond `_MOST_TEXT`, as one with their hash."""
    found: list[str] = []
    rest, more, length = hashlib.sha256(), 0, 0
    for line in lines:
        length += len(line)
        if len(found) < most and length <= _MOST_TEXT:
            found.append(line)
        else:
            rest.update(f"{line}\n".encode())
            more += 1
    return (*found, *([f"{more} more {what}: SHA-256 {rest.hexdigest()}"] if more else []))


def _events(file: IO[bytes]) -> Iterator[bytes]:
    while head := file.read(12):
        (length,) = struct.unpack_from("<Q", head)
        if length > _MOST_EVENT:
            raise ValueError("too long")
        event = file.read(length + 4)
        if len(event) != length + 4:
            raise ValueError("cut")
        yield event[:-4]


def _lines(event: bytes) -> Iterator[str]:
    fields = [*_fields(event)]
    step = next((value for number, value in fields if number == _STEP and isinstance(value, int)), 0)
    for number, value in fields:
        if number == _SUMMARY and isinstance(value, bytes):
            for kind, each in _fields(value):
                whole = kind == _VALUE and isinstance(each, bytes)
                yield f"step {step} {_value(each) if whole and isinstance(each, bytes) else _shown(each)}"
        elif number not in (_TIME, _STEP):
            yield f"step {step} field {number}: {_shown(value)}"


def _value(value: bytes) -> str:
    """Return a value of a summary: its tag, and a scalar as the shortest number with those bits."""
    words = []
    for number, each in _fields(value):
        if number == _SIMPLE and isinstance(each, bytes) and len(each) == 4:
            words.append(float32(each))
        else:
            words.append(_shown(each) if number == _TAG else f"{number}: {_shown(each)}")
    return " ".join(words)


def float32(data: bytes) -> str:
    """Return four bytes as the shortest number that has them."""
    (number,) = struct.unpack("<f", data)
    for digits in range(6, 10):
        text = f"{number:.{digits}g}"
        if struct.pack("<f", float(text)) == data:
            return text
    return f"{number} {data.hex()}"  # NaN has many forms


def _nested(message: bytes, depth: int) -> Iterator[str]:
    """Yield the fields of a message in a message, as what hyperparameters are kept in."""
    fields = [*_fields(message)]
    if not fields:
        raise ValueError("no message")
    shown = []
    for number, each in fields:
        of = struct.unpack("<d", each)[0] if isinstance(each, bytes) and len(each) == 8 else 0.0
        if 1e-9 < abs(of) < 1e11:
            shown.append(f"{number} double {of!r}")
        else:
            shown.append(f"{number}: {_shown(each, depth + 1)}")
    # The entries of a mapping, a key and a value each, are in any order:
    # https://protobuf.dev/programming-guides/proto3/#maps
    entries = iter(sorted(each for each in shown if _ENTRY.match(each)))
    yield from (next(entries) if _ENTRY.match(each) else each for each in shown)


def _shown(value: int | bytes, depth: int = 0) -> str:
    if isinstance(value, int):
        return str(value)
    try:
        text = value.decode() if len(value) <= _LONGEST else ""
    except UnicodeDecodeError:
        text = ""
    if depth < _DEEPEST and (not text or any(map(text.__contains__, _PICTURED_ONLY))):
        with suppress(ValueError, struct.error):
            return f"({'; '.join(_nested(value, depth))})"
    if (not text and value) or not _PICTURES.isdisjoint(text):
        return f"{len(value)} bytes, SHA-256 {hashlib.sha256(value).hexdigest()}"
    return text.translate(_PICTURED)


def _fields(message: bytes) -> Iterator[Field]:
    """Yield the fields of a message of protobuf. Raises `ValueError` for one not whole, or of too many."""
    at, count = 0, 0
    while at < len(message):
        count += 1
        if count > _MOST_FIELDS:
            raise ValueError("too many fields")
        key, at = _varint(message, at)
        kind, size = key & 7, 0
        if kind == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        if kind == 2:
            size, at = _varint(message, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError("no field")
        if size > len(message) - at:
            raise ValueError("cut")
        yield key >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            break
        value |= (message[at] & 127) << shift
        at += 1
        if message[at - 1] < 128:
            return value, at
    raise ValueError("no number")
