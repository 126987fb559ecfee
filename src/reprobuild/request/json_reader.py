"""Parse untrusted JSON, which has each key once and no NaN. Pure."""

from __future__ import annotations

import json
from typing import Any

MOST_VALUES = 10_000_000
"""Of a text; each takes 64 bytes of memory and more, though two characters are enough to write one."""


def load_json(data: bytes | str) -> Any:
    """Parse untrusted JSON. Raises `ValueError` if it is invalid or ambiguous."""
    # Of bytes, Python would guess UTF-16 and UTF-32 too, which no other tool reads (RFC 8259, 8.1).
    text = data.decode() if isinstance(data, bytes) else data
    hold_values(text)
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError as error:
        raise plainly(error) from None


def plainly(error: ValueError) -> ValueError:
    """Return the error of a parser without advice on how to set up Python."""
    return ValueError("a number has too many digits") if "set_int_max_str_digits" in str(error) else error


def hold_values(data: bytes | str) -> None:
    """Raise `ValueError` for JSON of more than `MOST_VALUES`, before it is parsed."""
    signs = ("[", "{", ",") if isinstance(data, str) else (b"[", b"{", b",")
    if sum(map(data.count, signs)) > MOST_VALUES:  # type: ignore[arg-type]  # one kind of text or the other
        raise ValueError(f"it has more than {MOST_VALUES:,} values")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is listed more than once")
    return found


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is not a number of JSON")
