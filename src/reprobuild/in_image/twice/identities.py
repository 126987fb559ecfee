"""Tells objects apart, also from those that are gone: an address is given to the next one."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

_address = id  # the one of builtins is watched


class Identities:
    """Numbers of objects, in the order in which they were asked for."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Any] | type, int]] = {}
        self._next = itertools.count(1)

    def number_of(self, value: Any, *, new: bool = False) -> int:
        """Return the number of an object.

        Python cannot watch a list or a dict: it has the number of the one before of its type at its address,
        unless it is said to be ``new``.
        """
        address = _address(value)
        known = self._known.get(address)
        if known is not None and not new and _is_same(value, known[0]):
            return known[1]
        number = next(self._next)
        try:
            self._known[address] = weakref.ref(value), number
        except TypeError:
            self._known[address] = type(value), number
        return number


def _is_same(value: Any, known: weakref.ref[Any] | type) -> bool:
    return known() is value if isinstance(known, weakref.ref) else known is type(value)
