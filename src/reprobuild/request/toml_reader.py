"""Parse untrusted TOML within bounds. Pure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from .json_reader import plainly

MOST_TEXT = 8 << 20
"""Characters of a TOML file; a lock of 500 packages has 300,000."""

MOST_PARTS = 16
"""Of a dotted key, whose square tomllib takes: 90 s for one of 100 kB. No key of ours has more than four."""

_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{MOST_PARTS}}}")

_STRING = re.compile(r"""\"(?:\\.|[^"\\])*+\"|'[^']*+'""")


def load_toml(text: str) -> dict[str, Any]:
    """Parse untrusted TOML. Raises `ValueError` if it is invalid or out of bounds."""
    if len(text) > MOST_TEXT:
        raise ValueError(f"it has more than {MOST_TEXT:,} characters")
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") >= MOST_PARTS and _LONG_KEY.search(_without_strings(line)):
            raise ValueError(f"line {number} has a key of more than {MOST_PARTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError as error:
        raise plainly(error) from None


def _without_strings(line: str) -> str:
    """Empty the strings of a line: names of wheels have more dots than a key.

    Where one of several lines may begin or end, the line stays as it is.
    """
    return line if '"""' in line or "'''" in line else _STRING.sub('""', line)


def table_in(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the table of a key; an empty one where it is missing, or is no table."""
    value = data.get(key, {})
    return value if isinstance(value, dict) else {}
