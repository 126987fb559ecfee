"""Paths that a file of a package may have. Pure."""

from __future__ import annotations

import re

_LONGEST = 4096
_LONGEST_NAME = 255
_REFUSED = re.compile("[\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""A backslash, control characters, what ends a line in Unicode, and bytes that are not text."""


def is_plain(path: str) -> bool:
    """Whether a path is relative, leads nowhere but down, and prints as one line of text."""
    parts = path.split("/")
    return (
        not {"", ".", ".."}.intersection(parts)
        and _REFUSED.search(path) is None
        and len(path.encode()) <= _LONGEST
        and all(len(part.encode()) <= _LONGEST_NAME for part in parts)
    )
