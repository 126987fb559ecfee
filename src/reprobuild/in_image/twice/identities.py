"""Tells objects apart, also from those that are gone: an address is given to the next one."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

_address = id  # the one of builtins is watched


class Identities:
    """Numbers of objects, in the order in which they were asked for."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._next = itertools.count(1)

    def number_of(self, value: Any) -> int | None:
        """Return the number of an object; None: Python cannot watch it, as a list or a dict."""
        address = _address(value)
        known = self._known.get(address)
        if known is not None and known[0]() is value:
            return known[1]
        number = next(self._next)
        try:
            self._known[address] = weakref.ref(value), number
        except TypeError:
            return None
        return number
