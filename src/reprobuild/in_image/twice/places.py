"""Where in the user's program something happens: the innermost frame that is neither a library's nor ours."""

from __future__ import annotations

import linecache
import re
import sys
import sysconfig
import weakref
from types import FrameType
from typing import Any

_PATHS = sysconfig.get_paths()
_LIBRARIES = tuple(
    {
        *(_PATHS[name].rstrip("/") + "/" for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        __file__.rpartition("/")[0] + "/",
        "<frozen ",
    }
)
_PICKLED = "<dynamic-code>"
"""The file of a function that cloudpickle brought into a worker of joblib's: its module is told beside it."""
_MOST_COMPILED = 50
"""Functions that Numba compiled in which a draw is looked for."""
_DRAWS = re.compile(r"\brandom\.\w+\(")
_known: dict[str, bool] = {}


def is_users(filename: str) -> bool:
    """Whether a file belongs to the program, and not to Python, an installed package or the recorder."""
    found = _known.get(filename)
    if found is None:
        found = not filename.startswith(_LIBRARIES) and "/site-packages/" not in filename
        # What libraries compile has a name of that kind, too: methods of dataclasses, networkx's decorators.
        if filename.startswith("<"):
            typed = filename.startswith(("<stdin>", "<ipython-input-", _PICKLED))
            found = typed or (filename == "<string>" and sys.argv[:1] == ["-c"])
        _known[filename] = found
    return found


def here(depth: int = 1, *, imports: bool = True) -> tuple[str, int, str]:
    """Return file, line and function of the innermost frame of the program; empty where there is none.

    Without ``imports``, also where the program has only imported what does it.
    """
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        code, name = frame.f_code, frame.f_code.co_filename
        if name == _PICKLED:
            name = str(frame.f_globals.get("__file__", name))
        if (field := _field_of(frame))[0]:
            return field
        if is_users(name):
            return name[-300:], frame.f_lineno or 0, code.co_name[:200]
        if not imports and code.co_filename.startswith("<frozen importlib"):
            break
        frame = frame.f_back
    return "", 0, ""


def of_frame(frame: FrameType) -> tuple[str, int, str]:
    """Return file, line and function of a frame."""
    return frame.f_code.co_filename[-300:], frame.f_lineno or 0, frame.f_code.co_name[:200]


def constructed_at(depth: int = 1) -> tuple[str, int, str]:
    """Return the line that makes the object whose ``__init__`` the program is in; else an empty place."""
    frame: FrameType | None = sys._getframe(depth)
    constructs = False
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            if frame.f_code.co_name != "__init__":
                own = of_frame(frame)
                return own if constructs else ("", 0, "")
            constructs = True
        frame = frame.f_back
    return "", 0, ""


_FRESH = re.compile(r"\bdefault_factory\s*=.*(?:time|now|uuid|random|rand|secrets|token|pid)")


def is_of_dataclass(frame: FrameType) -> bool:
    """Return whether a frame is the ``__init__`` that was made for a dataclass of the program's."""
    code = frame.f_code
    if (code.co_filename, code.co_name) != ("<string>", "__init__"):
        return False
    module = sys.modules.get(str(frame.f_globals.get("__name__")))
    return is_users(str(getattr(module, "__file__", "<")))


def _field_of(frame: FrameType) -> tuple[str, int, str]:
    """Return the line of the one field of a dataclass that is made anew for each object; else nothing."""
    if not is_of_dataclass(frame):
        return "", 0, ""
    if frame.f_code not in _fields:
        _fields[frame.f_code] = _fresh_field(type(frame.f_locals.get("self")))
    return _fields[frame.f_code]


_fields: dict[object, tuple[str, int, str]] = {}
"""By the code that makes a dataclass: its source is read once."""


def _fresh_field(kind: type) -> tuple[str, int, str]:
    import inspect  # noqa: PLC0415 -- dataclasses has imported it

    try:
        lines, first = inspect.getsourcelines(kind)
        found = [number for number, line in enumerate(lines, first) if _FRESH.search(line)]
        file = inspect.getsourcefile(kind) or ""
    except (OSError, TypeError):
        return "", 0, ""
    return (file[-300:], found[0], kind.__name__) if len(found) == 1 else ("", 0, "")


def drawn_at(depth: int = 1) -> tuple[str, int, str]:
    """Return where the program draws: `here`, or in a function that Numba compiled and that line calls.

    Numba's generators are seeded by the system as the first of these functions draws.
    """
    place = here(depth + 1, imports=False)
    if "numba" not in sys.modules:
        return place
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    import dis  # noqa: PLC0415 -- only beside Numba, which has imported it

    left = [] if frame is None else [frame.f_globals.get(name) for name in frame.f_code.co_names]
    seen: list[object] = []
    while left and len(seen) < _MOST_COMPILED:
        function = getattr(left.pop(0), "py_func", None)
        if function is None or function in seen:
            continue
        seen.append(function)
        code = function.__code__
        for number in dict.fromkeys(number for _, number in dis.findlinestarts(code)):
            if number and _DRAWS.search(linecache.getline(code.co_filename, number)):
                return code.co_filename[-300:], number, code.co_name
        left += [function.__globals__.get(name) for name in code.co_names]
    return place


made: weakref.WeakKeyDictionary[object, tuple[str, int, str]] = weakref.WeakKeyDictionary()
"""Objects of libraries that draw later if they were made without a seed, and where each was made."""


def place_of(kind: str, depth: int = 1) -> tuple[str, int, str]:
    """Return where the program takes a value of some kind, or where it made what draws in a library."""
    if kind == "entropy":
        return drawn_at(depth + 1)
    frame: FrameType | None = sys._getframe(depth) if kind == "draw" and made else None
    while frame is not None and not is_users(frame.f_code.co_filename):
        if frame.f_code.co_varnames[:1] == ("self",):
            place = _made_at(frame.f_locals.get("self"))
            if place[0]:
                return place
        frame = frame.f_back
    return here(depth + 1, imports=False)


def _made_at(value: Any) -> tuple[str, int, str]:
    try:
        place = made.get(value) if value.random_state is None else None
    except (AttributeError, TypeError):  # it has no such attribute, or no hash
        place = None
    return place or ("", 0, "")


_BESIDE = (
    *("tempfile", "uuid", "secrets", "multiprocessing", "random", "reprobuild_twice", "importlib"),
    "numpy.random._pickle",  # a copy of a generator, which then gets the other's state
)
"""Libraries whose draws are told by what they are for, or come to nothing."""
_ARCHIVES = ("gzip", "tarfile", "zipfile")


def inside(frame: Any, kind: str) -> str | None:
    """Say in which line of a library a call stands; empty: in the program; None: it does not count."""
    if is_users(frame.f_code.co_filename):
        return ""
    module = str(frame.f_globals.get("__name__", ""))
    if frame.f_code.co_filename == "<string>" and is_of_dataclass(frame):
        return ""
    counts = kind in ("draw", "seed", "entropy") and not module.startswith(_BESIDE)
    if counts or (kind == "clock" and module in _ARCHIVES):
        return f" in {module[:80]}:{frame.f_lineno}"
    return None


def text(place: tuple[str, int, str]) -> str:
    """Return the line of the program's text at a place."""
    return linecache.getline(place[0], place[1]).strip()[:300]
