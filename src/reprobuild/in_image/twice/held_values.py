"""What an object holds, found without running anything of the program's: attributes, slots, states."""

from __future__ import annotations

import sys
from typing import Any

from .places import is_users

MISSING = object()
LISTS = frozenset((list, tuple))
_reduces: dict[type, bool] = {}
_slots_of: dict[type, list[str]] = {}


def find(path: tuple[str, ...], names: Any, outer: Any) -> Any:
    """Return the value of a path, of a property the object that has it; `MISSING` where there is none."""
    value = names.get(path[0], MISSING)
    if value is MISSING:
        value = outer.get(path[0], MISSING)
    for attribute in path[1:]:
        if value is MISSING:
            return MISSING
        inner = attribute_of(value, attribute)
        if inner is MISSING:
            return value
        value = inner
    return value


def attribute_of(value: Any, name: str) -> Any:
    """Return an attribute that an object or its class holds, without running anything; or `MISSING`."""
    held = held_by(value)
    if name in held:
        return held[name]
    for store in ("_parameters", "_buffers", "_modules"):  # those of a module of torch
        inner = held.get(store)
        if type(inner) is dict and name in inner:
            return inner[name]
    for kind in (value if isinstance(value, type) else type(value)).__mro__:
        if name in vars(kind):
            found = vars(kind)[name]
            slot = type(found).__name__ == "member_descriptor"
            if slot:
                try:
                    return found.__get__(value)
                except AttributeError:
                    return MISSING
            return MISSING if hasattr(type(found), "__get__") else found
    return MISSING


def part_of(value: Any, name: int | str) -> Any:
    """Return an item of a list or dict, a column of a table, or else an attribute; `MISSING`: it has none."""
    kind = type(value)
    if kind in LISTS:
        return value[name] if isinstance(name, int) and name < len(value) else MISSING
    if kind is dict:
        return value.get(name, MISSING)
    if kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] in ("pandas", "polars"):
        return value[name] if name in value.columns else MISSING
    return attribute_of(value, name) if isinstance(name, str) else MISSING


def rows_of(table: Any) -> bytes | None:
    """Return a hash of each row of a table of Polars'; None: it holds objects, which hash by their addresses.

    Raises what Polars does of columns of a type that has no hash.
    """
    if any("Object" in str(kind) for kind in table.dtypes):
        return None
    hashed: bytes = table.hash_rows(seed=1).to_numpy().tobytes()
    return hashed


def can_be_pickled(value: Any) -> bool:
    """Return whether an object is a library's own in C that no attributes show, and that pickle can show."""
    kind = type(value)
    home = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if (
        held_by(value)
        or slots_of(kind)
        or kind.__module__ in ("builtins", "torch")
        or is_users(home or "<c>")
    ):
        return False  # of a class of the program's own nothing runs
    if kind not in _reduces:
        names = {"__reduce__", "__reduce_ex__", "__getstate__"}
        _reduces[kind] = any(names & vars(each).keys() for each in kind.__mro__[:-1])
    return _reduces[kind]


def held_by(value: Any) -> Any:
    """Return the attributes of an object itself."""
    try:
        return object.__getattribute__(value, "__dict__")
    except Exception:  # noqa: BLE001 -- it has none
        return {}


def in_slots(value: Any) -> dict[str, Any]:
    """Return the attributes of an object that its classes have slots for."""
    found = {name: attribute_of(value, name) for name in slots_of(type(value))}
    return {name: each for name, each in found.items() if each is not MISSING}


def is_opaque(value: Any) -> bool:
    """Whether it is a module, a function or a class, which count by their names."""
    kind = type(value).__name__
    return isinstance(value, type) or kind in (
        *("module", "function", "builtin_function_or_method", "method", "method-wrapper", "ufunc"),
        "cython_function_or_method",
        *("_ArrayFunctionDispatcher", "method_descriptor", "wrapper_descriptor", "classmethod_descriptor"),
    )


def state_of(value: Any) -> Any:
    """Return the state of a random generator; `MISSING` if it is none."""
    kind = type(value)
    if kind.__module__ == "random" and hasattr(value, "getstate"):
        return value.getstate()
    if kind.__module__.startswith("numpy.random"):
        if hasattr(value, "bit_generator"):
            return value.bit_generator.state
        if hasattr(value, "get_state"):
            return value.get_state(legacy=False)
    if kind.__module__.startswith("torch") and kind.__name__ == "Generator":
        return value.get_state()
    return MISSING


def slots_of(kind: type) -> list[str]:
    """Return the names of the attributes that a class and those above it have slots for."""
    if kind not in _slots_of:
        found: list[str] = []
        for each in kind.__mro__:
            names = vars(each).get("__slots__", ())
            found += [names] if isinstance(names, str) else [name for name in names if isinstance(name, str)]
        _slots_of[kind] = [name for name in found if not name.startswith("__")][:64]
    return _slots_of[kind]
