"""Numbers that a program measures, such as times: they stay what they are, and what becomes of them is noted.

A clock gives a `Float` or `Int` of these in place of a plain one. What is computed from it is one again, and
each number and text that comes out is kept with the place that made it. So the outside can tell a printed
duration from a result, without guessing by names or units. Not followed into C: NumPy, torch, ``%``.

Only a computation that a quantity allows is followed: an instant and a duration give an instant, a duration
times a number a duration. A clock as a source of noise, ``time() % 1`` or ``0.1 + elapsed``, gives a result.
"""

from __future__ import annotations

import sys
from collections import deque

TYPE_CHECKING = False  # importing typing costs milliseconds at the start of every process
if TYPE_CHECKING:
    from typing import Any

MOST_SITES = 4096
KEPT = 512
"""How many values of a place are kept at least: so many from the first on, and so many up to the last."""
MOST_OF_SITE = 100_000
"""How many from the first on, while there is room."""
MOST_VALUES = 200_000
"""Values of all places together for which there is room beyond that."""


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
        number = len(self.first)
        if number < KEPT:
            self.first.append(value)
        elif number < MOST_OF_SITE and not self.last and room[0] > 0:
            room[0] -= 1
            self.first.append(value)
        else:
            self.last.append(value)


recent: deque[tuple[str, str, int]] = deque(maxlen=64)
"""The last texts of measured numbers that were not printed yet, each with the place that wrote it."""
room = [MOST_VALUES]
sites: dict[tuple[Any, int, str], Site] = {}


def note(kind: str, value: Any, depth: int = 2) -> None:
    """Keep a value with the place that is so many calls above."""
    frame = sys._getframe(depth)
    code = frame.f_code
    note_at((code, frame.f_lasti, kind), kind, value, code.co_filename, frame.f_lineno or 0)


def note_at(key: tuple[Any, int, str], kind: str, value: Any, file: str, line: int) -> None:
    """Keep a value with a place: ``key`` tells those of a line apart."""
    site = sites.get(key)
    if site is None:
        if len(sites) >= MOST_SITES:
            return
        site = sites[key] = Site(kind, file[-300:], line)
    site.add(value)
    if kind == "text":
        recent.append((str(value).strip(), site.file, site.line))


def plain(value: Any) -> Any:
    """Return a number that was measured as a plain one; None for anything else."""
    if not _what(value):
        return None
    return float.__pos__(value) if isinstance(value, float) else int.__pos__(value)


def _is_number(value: Any) -> bool:
    # Those of NumPy are floats, too, but give their own kind.
    return isinstance(value, (int, float)) and type(value).__module__ != "numpy"


def _derived(value: Any, *, instant: bool = False) -> Any:
    if type(value) is float:
        return FloatInstant(value) if instant else Float(value)
    if type(value) is int:
        return IntInstant(value) if instant else Int(value)
    return value


def _operator(base: Any, name: str, *, reflected: bool) -> Any:
    method = f"__r{name}__" if reflected else f"__{name}__"
    inner, of_float = getattr(base, method), getattr(float, method)

    def operator(self: Any, other: Any, *more: Any) -> Any:
        if not _is_number(other):
            return NotImplemented
        if isinstance(other, float):  # an int's own method does not know it
            result = of_float(float(self), other, *more)
        else:
            result = inner(self, other, *more)
        if result is NotImplemented or more:
            return result
        kind = _kind(name, other, self) if reflected else _kind(name, self, other)
        if not kind:
            return result
        if type(result) is tuple:
            for each in result:
                note("value", each)
            return tuple(_derived(each, instant=kind == _INSTANT) for each in result)
        if type(result) is float or type(result) is int:
            note("value", result)
        return _derived(result, instant=kind == _INSTANT)

    operator.__name__ = method
    return operator


_INSTANT, _LASTING = "instant", "lasting"


def _what(value: Any) -> str:
    if isinstance(value, (FloatInstant, IntInstant)):
        return _INSTANT
    return _LASTING if isinstance(value, (Float, Int)) else ""


def _kind(name: str, left: Any, right: Any) -> str:
    """Return what a computation of a quantity gives; empty: a plain number."""
    one, other = _what(left), _what(right)
    if _INSTANT in (one, other):
        return _of_instant(name, left, right, (one, other))
    if one and other:
        return "" if name in ("mod", "pow") else _LASTING
    plain, quantity = (float(right), float(left)) if one else (float(left), float(right))
    kept = name in ("mul", "truediv")
    if name in ("add", "sub"):
        kept = _negligible(plain, quantity, name)
    elif name == "floordiv":
        kept = not one or _is_unit(plain)
    elif name in ("mod", "divmod"):
        kept = bool(one) and _is_unit(plain) and plain not in (10.0, 100.0)
    elif name == "pow":
        kept = bool(one) and plain in (2.0, 0.5, -1.0)
    return _LASTING if kept else ""


def _of_instant(name: str, left: Any, right: Any, kinds: tuple[str, str]) -> str:
    if name == "add":
        return "" if kinds == (_INSTANT, _INSTANT) else _INSTANT
    if name == "sub":
        if kinds == (_INSTANT, _INSTANT):
            return _LASTING
        if _LASTING not in kinds:  # a whole second, or a file's time
            a, b = float(left), float(right)
            near = abs(a - b) < 0.01 * max(abs(a), abs(b))
            return _LASTING if near else _INSTANT if kinds[0] else ""
        return _INSTANT if kinds[0] else ""
    if name in ("mul", "truediv", "floordiv"):
        plain = right if kinds[0] else left
        scaled = not all(kinds) and (kinds[0] or name == "mul") and _is_unit(float(plain))
        return _INSTANT if scaled else ""
    return ""


def _negligible(plain: float, quantity: float, name: str) -> bool:
    """Return whether a sum is the duration still, as with an epsilon or without its whole minutes."""
    if abs(plain) <= _EPSILON:
        return True
    return name == "sub" and any(plain == quantity // unit * unit for unit in (1, 60, 3600, 86400))


_EPSILON = 1e-6


def _is_unit(number: float) -> bool:
    """Return whether a number only leads from one unit of time or size to another."""
    if not 1e-18 < number < 1e18:
        return False
    number = number if number >= 1 else 1 / number
    return any(abs(number - each) <= 1e-9 * each for each in _UNITS)


_UNITS = tuple(float(each * 10**power) for each in (1, 24, 60, 3600, 86400) for power in range(19)) + tuple(
    1024.0**power for power in (1, 2, 3, 4)
)


def _function(base: Any, name: str, kind: str) -> Any:
    inner = getattr(base, name)

    def function(self: Any, *arguments: Any) -> Any:
        result = inner(self, *arguments)
        # int() and math.floor() have to give a plain number.
        note(kind, result)
        return _derived(result, instant=_what(self) == _INSTANT) if kind == "value" else result

    function.__name__ = name
    return function


def _written(base: Any, name: str) -> Any:
    inner, plain = getattr(base, name), base.__pos__

    def function(self: Any, *arguments: Any) -> Any:
        # Of the plain number: one of a class below would be asked for its text once more.
        result = inner(plain(self), *arguments)
        note("text", result)
        return result

    function.__name__ = name
    return function


_OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "divmod")


def _methods(base: Any) -> dict[str, Any]:
    found = {}
    for name in _OPERATORS:
        for reflected in (False, True):
            method = _operator(base, name, reflected=reflected)
            found[method.__name__] = method
    for each in ("__neg__", "__pos__", "__abs__", "__round__"):
        found[each] = _function(base, each, "value")
    for each in ("__int__", "__trunc__", "__floor__", "__ceil__"):
        if hasattr(base, each):
            found[each] = _function(base, each, "whole")
    for each in ("__format__", "__str__", "__repr__"):
        found[each] = _written(base, each)
    # Pickled and copied as what it is for the program.
    found["__reduce_ex__"] = lambda self, _: (base, (base.__pos__(self),))
    return found


class Float(float):
    """A duration, a rate or a size that was measured."""

    __slots__ = ()


class Int(int):
    """A duration or a size that was measured, as a whole number."""

    __slots__ = ()


class FloatInstant(Float):
    """What a clock shows: its distance to nothing in the program."""

    __slots__ = ()


class IntInstant(Int):
    """What a clock shows, as a whole number."""

    __slots__ = ()


for _class in (Float, Int):
    for _name, _method in _methods(_class.__mro__[1]).items():
        setattr(_class, _name, _method)


def gathered(values: Any, result: Any, depth: int = 2) -> Any:
    """Return what a function in C or with fractions made of values: a duration only of durations alone."""
    given = [values] if isinstance(values, (int, float)) else values
    if type(result) not in (float, Float) or not any(map(_what, given)):
        return result
    if not all(_what(each) == _LASTING for each in given):
        return float(result)
    note("value", float(result), depth)
    return Float(result)


def of(value: Any, *, instant: bool = False, faster: Any = None) -> Any:
    """Return a number that is followed; anything else, as a structure, with its numbers followed.

    ``faster`` gives what a faster clock would show.
    """
    if type(value) in (float, int):
        depth = 2
        while (name := sys._getframe(depth).f_globals.get("__name__") or "") in _BETWEEN:
            depth += 1
        if name.startswith(_PLAIN):
            return value
        value = value if faster is None else faster(value)
        note("value", value, depth + 1)
        return _derived(value, instant=instant)
    if isinstance(value, tuple) and value:
        if faster is not None:
            larger = [faster(each) if type(each) in (float, int) else each for each in value]
            value = type(value)(*larger) if hasattr(type(value), "_fields") else type(value)(larger)
        numbers = [_derived(each) for each in value]
        for each in value:
            note("value", each, 3)
        kind = type(value)
        return kind(*numbers) if hasattr(kind, "_fields") else kind(numbers)
    return value


_BETWEEN = ("reprobuild_twice.sources", "reprobuild_twice.pins")
"""Modules of the recorder that call a clock for the program, in a trace or an experiment."""
_PLAIN = (
    *("threading", "queue", "selectors", "subprocess", "asyncio", "concurrent.", "multiprocessing", "socket"),
    *("ssl", "sched", "random", "tempfile", "importlib", "reprobuild_twice", "zipfile", "tarfile"),
    *("torch._", "torch.distributed", "torch.fx", "torch.profiler", "torch.autograd"),
)
"""Modules that get plain numbers: they only wait by them, or hand them on to C."""
