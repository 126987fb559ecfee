"""Numbers that a program measures, such as times: they stay what they are, and what becomes of them is noted.

A clock gives a `Float` or `Int` of these in place of a plain one. What is computed from it is one again, and
each number and text that comes out is kept with the place that made it. So the outside can tell a printed
duration from a result, without guessing by names or units. Not followed into C: NumPy, torch, ``%``.
"""

from __future__ import annotations

import sys
from collections import deque

TYPE_CHECKING = False  # importing typing costs milliseconds at the start of every process
if TYPE_CHECKING:
    from typing import Any

MOST_SITES = 4096
KEPT = 512
"""How many values of a place are kept: so many from the first on, and so many up to the last."""


class Site:
    """A place that makes numbers or texts of what was measured."""

    def __init__(self, kind: str, file: str, line: int) -> None:
        self.kind, self.file, self.line = kind, file, line
        self.count = 0
        self.first: list[Any] = []
        self.last: deque[Any] = deque(maxlen=KEPT)

    def add(self, value: Any) -> None:
        """Keep a value."""
        self.count += 1
        (self.first if len(self.first) < KEPT else self.last).append(value)


sites: dict[tuple[Any, int, str], Site] = {}


def note(kind: str, value: Any, depth: int = 2) -> None:
    """Keep a value with the place that is so many calls above."""
    frame = sys._getframe(depth)
    key = (frame.f_code, frame.f_lasti, kind)
    site = sites.get(key)
    if site is None:
        if len(sites) >= MOST_SITES:
            return
        site = sites[key] = Site(kind, frame.f_code.co_filename[-300:], frame.f_lineno or 0)
    site.add(value)


def _is_number(value: Any) -> bool:
    # Those of NumPy are floats, too, but give their own kind.
    return isinstance(value, (int, float)) and type(value).__module__ != "numpy"


def _derived(value: Any) -> Any:
    if type(value) is float:
        return Float(value)
    return Int(value) if type(value) is int else value


def _operator(base: Any, name: str) -> Any:
    inner = getattr(base, name)

    def operator(self: Any, other: Any, *more: Any) -> Any:
        if not _is_number(other):
            return NotImplemented
        result = inner(self, other, *more)
        if type(result) is float or type(result) is int:
            note("value", result)
            return _derived(result)
        if type(result) is tuple:
            for each in result:
                note("value", each)
            return tuple(map(_derived, result))
        return result

    operator.__name__ = name
    return operator


def _function(base: Any, name: str, kind: str) -> Any:
    inner = getattr(base, name)

    def function(self: Any, *arguments: Any) -> Any:
        result = inner(self, *arguments)
        # int() and math.floor() have to give a plain number.
        note("value" if kind == "value" and type(result) is float else kind, result)
        return _derived(result) if kind == "value" else result

    function.__name__ = name
    return function


_OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "divmod")


def _methods(base: Any) -> dict[str, Any]:
    found = {}
    for name in _OPERATORS:
        for each in (f"__{name}__", f"__r{name}__"):
            found[each] = _operator(base, each)
    for each in ("__neg__", "__pos__", "__abs__", "__round__"):
        found[each] = _function(base, each, "value")
    for each in ("__int__", "__trunc__", "__floor__", "__ceil__"):
        if hasattr(base, each):
            found[each] = _function(base, each, "whole")
    for each in ("__format__", "__str__", "__repr__"):
        found[each] = _function(base, each, "text")
    # Pickled and copied as what it is for the program.
    found["__reduce_ex__"] = lambda self, _: (base, (base.__pos__(self),))
    return found


class Float(float):
    """A number that was measured."""

    __slots__ = ()


class Int(int):
    """A whole number that was measured."""

    __slots__ = ()


for _class in (Float, Int):
    for _name, _method in _methods(_class.__mro__[1]).items():
        setattr(_class, _name, _method)


def of(value: Any) -> Any:
    """Return a number that is followed; anything else, as a structure, with its numbers followed."""
    if type(value) in (float, int):
        frame = sys._getframe(2)
        if (frame.f_globals.get("__name__") or "").startswith(_PLAIN):
            return value
        note("value", value, 3)
        return _derived(value)
    if isinstance(value, tuple) and value:
        numbers = [_derived(each) for each in value]
        for each in value:
            note("value", each, 3)
        kind = type(value)
        return kind(*numbers) if hasattr(kind, "_fields") else kind(numbers)
    return value


_PLAIN = (
    *("threading", "queue", "selectors", "subprocess", "asyncio", "concurrent.", "multiprocessing", "socket"),
    *("ssl", "sched", "random", "tempfile", "importlib", "reprobuild_twice", "zipfile", "tarfile"),
    *("torch._", "torch.distributed", "torch.fx", "torch.profiler", "torch.autograd"),
)
"""Modules that get plain numbers: they only wait by them, or hand them on to C."""
