"""Gives the program's objects hashes that their addresses do not decide, so that a set has one order of them.

An object without a hash of its own has one made of its address (`object.__hash__`), which changes from run to
run. Here it has a number, in the order in which such objects are hashed.
"""

from __future__ import annotations

import builtins
import functools
import sys
from contextlib import suppress
from typing import Any

from .identities import Identities
from .places import is_users
from .watching import Watcher

_hashed = Identities()
_BY_ADDRESS: tuple[Any, Any] = (object.__hash__, object.__eq__)


def install(watcher: Watcher) -> None:
    """Change the classes that the program's files make from now on, if they hash by address."""
    make = builtins.__build_class__

    def build_class(function: Any, name: Any, *bases: Any, **named: Any) -> Any:
        made = make(function, name, *bases, **named)
        if is_users(sys._getframe(1).f_code.co_filename):
            _number(made)
        return made

    setattr(builtins, "__build_class__", build_class)  # noqa: B010 -- it has a type of its own
    watcher.after("dataclasses", _dataclasses)
    watcher.after("attr._make", _attrs)


def _dataclasses(module: Any) -> None:
    """Let `dataclasses` see the classes as they were: it takes a hash that is there for the user's."""
    inner = module._process_class

    @functools.wraps(inner)
    def process_class(cls: Any, *arguments: Any, **named: Any) -> Any:
        if vars(cls).get("__hash__") is hash_of:
            del cls.__hash__
        found = inner(cls, *arguments, **named)
        _number(found)
        return found

    module._process_class = process_class


def _attrs(module: Any) -> None:
    """Likewise for attrs."""
    inner = module._has_own_attribute

    @functools.wraps(inner)
    def has_own_attribute(cls: Any, name: str) -> Any:
        return inner(cls, name) and not (name == "__hash__" and vars(cls).get(name) is hash_of)

    module._has_own_attribute = has_own_attribute


def _number(kind: Any) -> None:
    with suppress(Exception):  # whatever a metaclass does with that
        if (kind.__hash__, kind.__eq__) == _BY_ADDRESS:
            kind.__hash__ = hash_of


def hash_of(value: Any) -> int:
    """Return the number of an object."""
    return _hashed.number_of(value)
