"""Lets libraries that write numbers take measured ones, which are of classes below float and int.

What json's code in C writes is noted here, since it asks no method of the number.
"""

from __future__ import annotations

import functools
import sys

from . import measured

TYPE_CHECKING = False  # importing typing costs milliseconds at the start of every process
if TYPE_CHECKING:
    from typing import Any

    from .watching import Watcher

MOST = 10_000
"""Values of a document up to which it is looked through."""
_KINDS = (measured.Float, measured.FloatInstant, measured.Int, measured.IntInstant)


def _json(module: Any) -> None:
    kind = module.JSONEncoder
    for name in ("encode", "iterencode"):
        setattr(kind, name, _noting(getattr(kind, name)))


def _noting(inner: Any) -> Any:
    @functools.wraps(inner)
    def wrapper(self: Any, value: Any, *arguments: Any, **keywords: Any) -> Any:
        depth = 1
        while (name := sys._getframe(depth).f_globals.get("__name__") or "").startswith("json"):
            depth += 1
        again = depth > 1 and sys._getframe(1).f_code.co_name == "encode"  # which calls iterencode
        for number in () if again or name.startswith("reprobuild_twice") else _numbers(value):
            kind = float if isinstance(number, float) else int
            measured.note("text", kind.__repr__(number), depth + 1)
        return inner(self, value, *arguments, **keywords)

    return wrapper


def _numbers(value: Any) -> list[Any]:
    """Return the measured numbers of a document, in its order."""
    found, stack, left = [], [value], MOST
    while stack and left:
        left -= 1
        each = stack.pop()
        if isinstance(each, (measured.Float, measured.Int)):
            found.append(each)
        elif isinstance(each, dict):
            stack += list(dict.values(each))[:MOST][::-1]
        elif type(each) in (list, tuple):
            stack += each[:MOST][::-1]
    return found


def _orjson(module: Any) -> None:
    """It takes no class below float or int, so these are made plain."""
    inner = module.dumps

    @functools.wraps(inner)
    def dumps(value: Any, default: Any = None, option: Any = None) -> Any:
        def plain(each: Any) -> Any:
            if isinstance(each, (measured.Float, measured.Int)):
                return +float(each) if isinstance(each, float) else int(each)
            if default is None:
                raise TypeError(f"Type is not JSON serializable: {type(each).__name__}")
            return default(each)

        return inner(value, plain, option)

    module.dumps = dumps


def _yaml(module: Any) -> None:
    """It looks classes up by themselves: it refused these, or wrote how to make one."""
    for each in list(vars(module).values()):
        if isinstance(each, type) and hasattr(each, "represent_float") and hasattr(each, "add_representer"):
            for kind in _KINDS:
                name = "represent_float" if issubclass(kind, float) else "represent_int"
                each.add_representer(kind, getattr(each, name))


def install(watcher: Watcher) -> None:
    """Follow what is there, and what is imported later."""
    watcher.after("json.encoder", _json)
    watcher.after("orjson", _orjson)
    for name in ("yaml.representer", "ruamel.yaml.representer"):
        watcher.after(name, _yaml)
