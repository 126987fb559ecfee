"""Values of one run put in the place of another's, for an experiment.

Only values travel: numbers, texts, containers, arrays, the states of generators. An object that the other run
has too, by what it holds, is that run's own, since others refer to it. So a list in another order becomes the
same list with its own objects in that order; a copy of a model's weights would train nothing, and is refused.
"""

from __future__ import annotations

import io
import pickle
import sys
from typing import Any

from . import held_values as values
from . import line_values

MOST_OBJECTS = 5000
_PLAIN = (
    *(bool, int, float, complex, str, bytes, bytearray, type(None), type(...)),
    *(list, tuple, dict, set, frozenset, slice, range),
)
_BY_VALUE = (
    "numpy",
    "pandas",
    "polars",
    "datetime",
    "decimal",
    "fractions",
    "uuid",
    "pathlib",
    "collections",
)
"""Packages whose objects are values."""


class State:
    """The state of a random generator, in its place."""

    def __init__(self, state: Any) -> None:
        self.state = state


def dumped(held: dict[str, Any]) -> bytes:
    """Return values by name as bytes. Raises what pickle does, and TypeError for one that cannot travel."""
    found = {}
    for name, value in held.items():
        if value is values.MISSING:
            continue
        state = values.state_of(value)
        if state is not values.MISSING:
            found[name] = State(state)
        else:
            found[name] = value.detach() if _is_tensor(value) and not value.is_leaf else value
    file = io.BytesIO()
    _Pickler(file).dump(found)
    return file.getvalue()


def give(data: bytes, paths: list[tuple[str, ...]], names: Any, outer: Any) -> None:
    """Let paths have the values that `dumped` made bytes of. Raises as it does, and LookupError."""
    now = {path: values.find(path, names, outer) for path in paths}
    given = _Unpickler(io.BytesIO(data), _objects(list(now.values()))).load()
    for path in paths:
        if ".".join(path) in given:
            _put(path, given[".".join(path)], now[path], names, outer)


class _Pickler(pickle.Pickler):
    def __init__(self, file: Any, depth: int = 0) -> None:
        super().__init__(file, 4)
        self._depth = depth

    def persistent_id(self, value: Any) -> Any:
        """Return what tells an object that the other run has too, and its bytes if it may be copied."""
        kind = type(value)
        if kind in _PLAIN or kind is State or _is_named_tuple(kind):
            return None
        if values.is_opaque(value) and kind.__name__ != "module":
            return None
        if _is_tensor(value):
            return ("object", _name(value), b"") if value.requires_grad else ("tensor", "", _saved(value))
        if kind.__module__.partition(".")[0] in _BY_VALUE and values.state_of(value) is values.MISSING:
            return None
        if values.can_be_pickled(value):
            return None
        return ("object", _name(value), self._copied(value, kind))

    def _copied(self, value: Any, kind: type) -> bytes:
        """Return the bytes of an object's attributes, if that is all that it has."""
        attributes = {**values.held_by(value), **values.in_slots(value)}
        if self._depth > 4 or kind.__module__.startswith("torch") or not attributes or _is_module(value):
            return b""
        try:
            file = io.BytesIO()
            _Pickler(file, self._depth + 1).dump((kind, attributes))
            return file.getvalue()
        except Exception:  # noqa: BLE001 -- whatever cannot be pickled: then only the other run's own will do
            return b""


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, objects: dict[str, list[Any]]) -> None:
        super().__init__(file)
        self._objects = objects
        self._used: dict[str, int] = {}

    def persistent_load(self, told: Any) -> Any:
        """Return this run's own object, or else a copy."""
        what, name, copied = told
        if what == "tensor":
            return sys.modules["torch"].load(io.BytesIO(copied), weights_only=True)
        own = self._objects.get(name, [])
        if own:
            at = self._used.get(name, 0)
            self._used[name] = at + 1
            return own[min(at, len(own) - 1)]
        if not copied:
            raise LookupError("an object of the other run is not in this one")
        kind, attributes = _Unpickler(io.BytesIO(copied), self._objects).load()
        made = object.__new__(kind)
        for attribute, value in attributes.items():
            object.__setattr__(made, attribute, value)
        return made


def _is_named_tuple(kind: type) -> bool:
    """Return whether it is a class of named tuples that pickle finds by its name."""
    home = sys.modules.get(kind.__module__)
    return issubclass(kind, tuple) and hasattr(kind, "_fields") and getattr(home, kind.__name__, None) is kind


def _saved(tensor: Any) -> bytes:
    file = io.BytesIO()
    sys.modules["torch"].save(tensor, file)
    return file.getvalue()


def _name(value: Any) -> str:
    kind = type(value)
    told = getattr(value, "__qualname__", "") if values.is_opaque(value) else ""
    return f"{kind.__module__}.{kind.__qualname__} {told} {line_values.digest(value)}"


def _objects(roots: list[Any]) -> dict[str, list[Any]]:
    """Return the objects in some values, by what they hold."""
    found: dict[str, list[Any]] = {}
    left, seen = list(roots), set[int]()
    while left and len(seen) < MOST_OBJECTS:
        value = left.pop(0)
        if id(value) in seen or value is values.MISSING:
            continue
        seen.add(id(value))
        kind = type(value)
        if issubclass(kind, dict):
            left += [*dict.keys(value), *dict.values(value)]
        elif issubclass(kind, (list, tuple, set, frozenset)) or kind.__name__ == "deque":
            left += list(value)
        elif kind not in _PLAIN:
            found.setdefault(_name(value), []).append(value)
            if not _is_tensor(value):
                left += values.held_by(value).values()
    return found


def _put(path: tuple[str, ...], value: Any, now: Any, names: Any, outer: Any) -> None:
    """Let a path have a value: in the object that is there, as others have it too, or else in its place."""
    if now is not values.MISSING and _filled(now, value):
        return
    if isinstance(value, State) or (_is_tensor(now) and now.requires_grad):
        raise TypeError("a value of another kind is there")
    if len(path) > 1:
        setattr(values.find(path[:-1], names, outer), path[-1], value)
    elif path[0] in names or path[0] not in outer:
        names[path[0]] = value
    else:
        outer[path[0]] = value


def _filled(now: Any, value: Any) -> bool:  # noqa: PLR0911 -- one a kind
    """Return whether an object could take over what another one has."""
    if now is value:
        return True
    if isinstance(value, State):
        return _set_state(now, value.state)
    kind = type(now)
    if kind is not type(value):
        return False
    if _is_tensor(now) or (kind.__module__ == "numpy" and hasattr(now, "tobytes")):
        return _copied(now, value)
    if kind is list:
        now[:] = value
        return True
    if kind.__name__ == "deque" or issubclass(kind, (set, dict, bytearray)):
        filled = list(value.items() if issubclass(kind, dict) else value)
        now.clear()
        (now.extend if hasattr(now, "extend") else now.update)(filled)
        return True
    held, other = values.held_by(now), values.held_by(value)
    if kind.__module__ == "builtins" or not held or held.keys() != other.keys():
        return False
    for name in list(held):
        if not _filled(held[name], other[name]):
            held[name] = other[name]
    return True


def _copied(now: Any, value: Any) -> bool:
    """Return whether an array or a tensor could take over what another one has."""
    if not getattr(now, "ndim", 0) or now.shape != value.shape or now.dtype != value.dtype:
        return False
    if _is_tensor(now):
        now.data.copy_(value.data)  # what autograd knows of it stays
        return True
    if not now.flags.writeable:
        return False
    now[...] = value
    return True


def _set_state(now: Any, state: Any) -> bool:
    if hasattr(now, "bit_generator"):
        now.bit_generator.state = state
    elif hasattr(now, "setstate"):
        now.setstate(state)
    elif hasattr(now, "set_state"):
        now.set_state(state)
    else:
        return False
    return True


def _is_tensor(value: Any) -> bool:
    kind = getattr(sys.modules.get("torch"), "Tensor", None)
    return kind is not None and isinstance(value, kind)


def _is_module(value: Any) -> bool:
    kind = getattr(getattr(sys.modules.get("torch"), "nn", None), "Module", None)
    return kind is not None and isinstance(value, kind)
