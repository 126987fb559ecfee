"""TOML files, parsed within bounds; one table read key by key, with messages that name the place. Pure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from ..errors import RequestError

MOST_TEXT = 8 << 20
"""Characters of a TOML file; a lock of 500 packages has 300,000."""

MOST_PARTS = 16
"""Of a dotted key, whose square tomllib takes: 90 s for one of 100 kB. No key of ours has more than four."""

_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{MOST_PARTS}}}")


def load_toml(text: str) -> dict[str, Any]:
    """Parse TOML that may be a stranger's. Raises `ValueError` for what is not valid, or out of bounds."""
    if len(text) > MOST_TEXT:
        raise ValueError(f"it has more than {MOST_TEXT:,} characters")
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") >= MOST_PARTS and _LONG_KEY.search(line):
            raise ValueError(f"line {number} has a key of more than {MOST_PARTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


class Table:
    """A table and where it stands. Making one refuses keys that are not known."""

    def __init__(self, data: Mapping[str, Any], prefix: str, where: str, known: Sequence[str]) -> None:
        self._data, self._prefix, self._where = data, prefix, where
        for key in data:
            if key not in known:
                raise RequestError(f"{self.where(key)}: unknown key", hint=f"known keys: {', '.join(known)}")

    def where(self, key: str, index: int | None = None) -> str:
        """Return the file and a key's place in it."""
        return f"{self._where}: {self._prefix}{key}" + ("" if index is None else f"[{index}]")

    def has(self, key: str) -> bool:
        """Whether a key is there."""
        return key in self._data

    def value(self, key: str, kind: type, default: Any) -> Any:
        """Return a value of a kind. Raises `RequestError`, as all here do."""
        value = self._data.get(key, default)
        if value is not default and type(value) is not kind:
            raise RequestError(f"{self.where(key)}: expected {_KINDS[kind]}, got {value!r}")
        return value

    def text(self, key: str, default: Any, good: Any, form: str) -> Any:
        """Return text that is good; ``form`` says in words what that is."""
        value = self.value(key, str, default)
        if value is not default and not good(value):
            raise RequestError(f"{self.where(key)}: {value!r} is not a valid {key}: expected {form}")
        return value

    def texts(self, key: str) -> list[tuple[int, str]]:
        """Return a list of text, with the positions."""
        values = self.value(key, list, [])
        for index, value in enumerate(values):
            if not isinstance(value, str):
                raise RequestError(f"{self.where(key, index)}: expected text in quotes, got {value!r}")
        return list(enumerate(values))

    def integer(self, key: str, default: Any, least: int, most: int) -> Any:
        """Return a whole number within limits."""
        value = self.value(key, int, default)
        if value is not default and not least <= value <= most:
            raise RequestError(f"{self.where(key)}: {value} is out of range: expected {least} to {most}")
        return value


_KINDS = {
    str: 'text in quotes, like "12.1"',
    int: "a whole number",
    bool: "true or false",
    list: 'a list like ["a", "b"]',
    dict: "a table",
    date: "a date without quotes, like 2024-09-15",
}
