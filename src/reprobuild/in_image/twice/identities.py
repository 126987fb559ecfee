"""Tells objects apart, also from those that are gone: an address is given to the next one."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

_address = id  # the one of builtins is watched


class Identities:
    """Numbers of objects, in the order in which they were asked for."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Any] | None, int]] = {}
        self._next = itertools.count(1)

    def number_of(self, value: Any, *, new: bool = False) -> int:
        """Return the number of an object.

        Python cannot watch a list or a dict: it has the number of the one before at its address, unless it is
        said to be ``new``.
        """
        address = _address(value)
        known = self._known.get(address)
        if known is not None and not new and (known[0] is None or known[0]() is value):
            return known[1]
        number = next(self._next)
        try:
            watched = weakref.ref(value)
        except TypeError:
            watched = None
        self._known[address] = watched, number
        return number
