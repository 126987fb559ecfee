"""What of a program's text is a time or a path, which differ in every run. Pure."""

from __future__ import annotations

import re

_UNITS = r"ns|us|µs|ms|s|secs?|seconds?|mins?|minutes?|hours?|it/s|s/it|[a-z]+/s(?:ec)?"
RULES: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "times of day",
        re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"),
    ),
    ("times of day", re.compile(r"\b\d{1,3}:\d\d(?::\d\d(?:[.,]\d+)?)?(?![\w.])")),
    ("times of day", re.compile(r"\b1[6-9]\d{8}(?:\.\d+)?\b")),
    (
        "durations and speeds",
        re.compile(rf"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)? ?(?:{_UNITS})\b", re.IGNORECASE),
    ),
    ("addresses in memory", re.compile(r"\b0x[0-9a-fA-F]{6,16}\b")),
    ("process numbers", re.compile(r"\bpid[ =:]+\d+", re.IGNORECASE)),
    ("temporary paths", re.compile(r"(?:/tmp|/var/tmp)/[^\s'\":,)]+")),
    ("temporary paths", re.compile(r"\btmp[a-z0-9_]{8}\b")),
)
"""What each mask is called, and what it takes out of a line."""

NAMES = tuple(dict.fromkeys(name for name, _ in RULES))


def masked(line: str) -> str:
    """Return a line without what differs in every run. Of one that was overwritten, the last state."""
    shown = line.rstrip("\r\n").rpartition("\r")[2]
    for name, pattern in RULES:
        shown = pattern.sub(f"<{name}>", shown)
    return shown


def masked_lines(data: bytes) -> list[str]:
    """Return the masked lines of a program's output, which may be no text at all."""
    return [masked(line) for line in data.decode("utf-8", "backslashreplace").split("\n")]
