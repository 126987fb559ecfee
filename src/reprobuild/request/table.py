"""Reader of untrusted tables, key by key: requests, locks, reports, records and archives.

What is wrong is a `TableError`, which names the place in the table. Whoever reads a file adds the file's
name on the way out, with `refused_as`. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from types import NoneType
from typing import Any, TypeVar

from ..errors import ReprobuildError

T = TypeVar("T")
D = TypeVar("D")

Types = Mapping[str, type | tuple[type, ...]]
"""The keys of a table, and the types that the value of each may have."""

NUMBER = (int, float)

SHA256 = re.compile(r"[0-9a-f]{64}")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")

_REQUIRED: Any = object()
_MOST = (1 << 63) - 1
_TOML: Mapping[type, str] = {
    str: 'text in quotes, like "12.1"',
    int: "a whole number",
    bool: "true or false",
    list: 'a list like ["a", "b"]',
    dict: "a table",
    date: "a date without quotes, like 2024-09-15",
    float: "a number",
}
_JSON = {**_TOML, str: "a string", list: "an array", dict: "an object", NoneType: "null"}


class TableError(ValueError):
    """An invalid place in a table; ``hint`` is the remedy."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@contextmanager
def refused_as(error: type[ReprobuildError], where: str, hint: str = "") -> Iterator[None]:
    """Make a `TableError` an error for the user, which begins with ``where``; ``hint`` replaces its own."""
    try:
        yield
    except TableError as wrong:
        raise error(f"{where}: {wrong}" if where else str(wrong), hint=hint or wrong.hint) from None


class Table:
    """A table and its place in the file. Refuses values that are not tables, and unknown keys."""

    __slots__ = ("data", "place")
    kinds = _TOML
    """What the file's format calls the types."""

    def __init__(self, data: object, place: str = "", known: Collection[str] | None = None) -> None:
        if not isinstance(data, dict):
            raise TableError(f"{place}: expected {self.kinds[dict]}, got {shown(data)}")
        self.data: Mapping[str, Any] = data
        self.place = place
        if known is not None:
            self.only(known)

    def only(self, known: Collection[str]) -> None:
        """Refuse keys that are not known."""
        for key in self.data:
            if key not in known:
                raise self.bad(key, "unknown key", f"known keys: {', '.join(known)}")

    def where(self, key: str, index: int | None = None) -> str:
        """Return a key's place in the file."""
        return f"{self.place}.{key}".removeprefix(".") + ("" if index is None else f"[{index}]")

    def bad(self, key: str, message: str, hint: str = "") -> TableError:
        """Return the error for a key."""
        return TableError(f"{self.where(key)}: {message}", hint)

    def has(self, key: str) -> bool:
        """Whether a key is there."""
        return key in self.data

    def value(self, key: str, kind: type[T], default: D = _REQUIRED) -> T | D:
        """Return a value of a type, or the default if the key is missing."""
        if key not in self.data and default is not _REQUIRED:
            return default
        if key not in self.data:
            raise self.bad(key, "missing")
        self._check_kind(key, kind)
        found: T = self.data[key]
        return found

    def _check_kind(self, key: str, *kinds: type) -> None:
        if type(self.data[key]) not in kinds:
            words = " or ".join(self.kinds[kind] for kind in kinds)
            raise self.bad(key, f"expected {words}, got {shown(self.data[key])}")

    def hold(self, key: str, *kinds: type) -> None:
        """Refuse a value of another type, NaN and infinity, and a number beyond 64 bits."""
        self._check_kind(key, *kinds)
        value = self.data[key]
        if isinstance(value, int | float) and not abs(value) <= _MOST:  # nor is NaN
            raise self.bad(key, f"{shown(value)} is out of range")

    def fields(self, types: Types) -> Mapping[str, Any]:
        """Return a table that has just these keys, each of its type."""
        self.only(types)
        for key, kinds in types.items():
            if key not in self.data:
                raise self.bad(key, "missing")
            self.hold(key, *(kinds if isinstance(kinds, tuple) else (kinds,)))
        return self.data

    def text(self, key: str, fits: Callable[[str], object], form: str, default: D = _REQUIRED) -> str | D:
        """Return text that fits; ``form`` says in words what that is."""
        value = self.value(key, str, default)
        if isinstance(value, str) and key in self.data and not fits(value):
            raise self.bad(key, f"{shown(value)} is not a valid {key}: expected {form}")
        return value

    def choice(self, key: str, known: Collection[T], default: D = _REQUIRED) -> T | D:
        """Return one of some texts."""
        form = " or ".join(f'"{each}"' for each in known)
        return self.text(key, known.__contains__, form, default)  # type: ignore[return-value]

    def sha256(self, key: str = "sha256") -> str:
        """Return a SHA-256."""
        if not SHA256.fullmatch(value := self.value(key, str)):
            raise self.bad(key, f"{shown(value)} is not a SHA-256: expected 64 lower-case hex digits")
        return value

    def digest(self, key: str) -> str:
        """Return a digest as OCI writes it."""
        if not DIGEST.fullmatch(value := self.value(key, str)):
            raise self.bad(
                key, f"{shown(value)} is not a digest: expected sha256: and 64 lower-case hex digits"
            )
        return value

    def integer(self, key: str, least: int, most: int, default: D = _REQUIRED) -> int | D:
        """Return a whole number within limits."""
        value = self.value(key, int, default)
        if isinstance(value, int) and key in self.data and not least <= value <= most:
            raise self.bad(key, f"{shown(value)} is out of range: expected {least} to {most}")
        return value

    def size(self, key: str = "size", most: int | None = None) -> int:
        """Return a number of bytes."""
        if not 0 < (value := self.value(key, int)) <= (most or _MOST):
            form = "at least 1" if most is None else f"1 to {most:,}"
            raise self.bad(key, f"{shown(value)} is not a valid size: expected a number of bytes, {form}")
        return value

    def flag(self, key: str) -> bool:
        """Return true or false; false if the key is missing."""
        return self.value(key, bool, False)  # noqa: FBT003 -- `value` takes any default

    def texts(
        self, key: str, read: Callable[[str], str] = str, default: Sequence[str] = _REQUIRED
    ) -> list[str]:
        """Return a list of text as ``read`` gives it, which raises ValueError for what does not fit."""
        found = []
        for index, value in enumerate(self.value(key, list, default)):
            if not isinstance(value, str):
                words = self.kinds[str].partition(",")[0]
                raise TableError(f"{self.where(key, index)}: expected {words}, got {shown(value)}")
            try:
                found.append(read(value))
            except ValueError as wrong:
                hint = wrong.hint if isinstance(wrong, TableError) else ""
                raise TableError(f"{self.where(key, index)}: {wrong}", hint) from None
        return found

    def sorted(self, key: str, read: Callable[[str], str] = str) -> tuple[str, ...]:
        """Return the texts of a list that may be missing, each once, in their order."""
        return tuple(sorted(set(self.texts(key, read, ()))))

    def table(self, key: str, known: Collection[str] | None = None, default: Any = _REQUIRED) -> Table:
        """Return the table of a key."""
        return type(self)(self.value(key, dict, default), self.where(key), known)

    def tables(
        self, key: str, known: Collection[str] | None = None, default: Sequence[Any] = _REQUIRED
    ) -> list[Table]:
        """Return the tables in a list."""
        values = self.value(key, list, default)
        return [type(self)(each, self.where(key, index), known) for index, each in enumerate(values)]


class JsonTable(Table):
    """An object of a JSON file."""

    __slots__ = ()
    kinds = _JSON


def shown(value: object) -> str:
    """Return how a message quotes a value, within bounds."""
    try:
        text = repr(value)
    except ValueError:  # a number of thousands of digits, which TOML may have in hexadecimal
        return "what is too long to show"
    return text if len(text) <= 80 else f"{text[:79]}…"
