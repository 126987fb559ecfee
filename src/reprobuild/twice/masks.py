"""What of a program's text is a time or a path, which differ in every run. Pure."""

from __future__ import annotations

import re

_UNITS = r"ns|us|µs|ms|s|secs?|seconds?|mins?|minutes?|hours?|it/s|s/it|[a-z]+/s(?:ec)?"
_TIMED = (
    r"(?i:[\w.]*?(?:time|runtime|elapsed|duration|took|timestamp|seconds|per_sec(?:ond)?"
    r"|time_(?:s|ms|sec|secs|ns)))"
)
"""Names of values that are times, durations or speeds."""
_TIMED_COLUMN = re.compile(rf"[\"' ]*{_TIMED}[\"' ]*")
RULES: tuple[tuple[str, re.Pattern[str]], ...] = (
    # As programs put them into the names of folders: 20240131-235959, 2024-01-31_23-59-59, Jan31_23-59-59.
    ("times of day", re.compile(r"(?<!\d)20\d{6}[-_T]?[0-2]\d[0-5]\d(?:[0-5]\d)?(?!\d)")),
    (
        "times of day",
        re.compile(r"(?<!\d)(?:\d{4}-\d\d-\d\d|[A-Z][a-z]{2}\d\d)[-_T /]\d\d[-.h]\d\d(?:[-.m]\d\d)?(?!\d)"),
    ),
    (
        "times of day",
        re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"),
    ),
    ("times of day", re.compile(r"\b\d{1,3}:\d\d(?::\d\d(?:[.,]\d+)?)?(?![\w.])")),
    ("times of day", re.compile(r"\b1[6-9]\d{8}(?:\.\d+)?\b")),
    # By the name before it, as Hugging Face's trainer prints {'train_runtime': 1.234}.
    (
        "durations and speeds",
        re.compile(rf"(?P<name>\b{_TIMED}[\"']?\s*[:=]\s*)-?\d+(?:\.\d+)?(?:e[+-]?\d+)?\b"),
    ),
    (
        "durations and speeds",
        re.compile(rf"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)? ?(?:{_UNITS})\b", re.IGNORECASE),
    ),
    ("addresses in memory", re.compile(r"\b0x[0-9a-fA-F]{6,16}\b")),
    ("process numbers", re.compile(r"\bpid[ =:]+\d+", re.IGNORECASE)),
    # As logging's %(process)d stands between the time and the level.
    (
        "process numbers",
        re.compile(
            r"(?P<name><times of day>[\W_]*)\d{1,7}(?=\W+(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL)\b)"
        ),
    ),
    ("temporary paths", re.compile(r"(?:/tmp|/var/tmp)/[^\s'\":,)]+")),
    ("temporary paths", re.compile(r"\btmp[a-z0-9_]{8}\b")),
)
"""What each mask is called, and what it takes out of a line."""

NAMES = tuple(dict.fromkeys(name for name, _ in RULES))


def is_timed(name: str) -> bool:
    """Whether a value of this name is a time, a duration or a speed."""
    return _TIMED_COLUMN.fullmatch(name) is not None


def masked(line: str) -> str:
    """Return a line without what differs in every run. Of one that was overwritten, the last state."""
    shown = line.rstrip("\r\n").rpartition("\r")[2]
    for name, pattern in RULES:
        kept = r"\g<name>" if "name" in pattern.groupindex else ""
        shown = pattern.sub(f"{kept}<{name}>", shown)
    return shown


def masked_lines(data: bytes) -> list[str]:
    """Return the masked lines of a program's output, which may be no text at all."""
    return [masked(line) for line in data.decode("utf-8", "backslashreplace").split("\n")]


def masked_table(data: bytes, comma: str) -> list[str]:
    """Return the masked lines of a table whose first line names its columns, without those that are times."""
    lines = data.decode("utf-8", "backslashreplace").split("\n")
    columns = lines[0].rstrip("\r").split(comma)
    timed = {index for index, name in enumerate(columns) if is_timed(name)}
    if not timed:
        return [masked(line) for line in lines]
    found = [masked(lines[0])]
    for line in lines[1:]:
        cells = line.rstrip("\r").split(comma)
        if len(cells) == len(columns):
            cells = ["<durations and speeds>" if index in timed else cell for index, cell in enumerate(cells)]
        found.append(masked(comma.join(cells)))
    return found
