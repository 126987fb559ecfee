"""Where in the user's program something happens: the innermost frame that is neither a library's nor ours."""

from __future__ import annotations

import linecache
import sys
import sysconfig
from types import FrameType

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
        if is_users(name):
            return name[-300:], frame.f_lineno or 0, code.co_name[:200]
        if not imports and code.co_filename.startswith("<frozen importlib"):
            break
        frame = frame.f_back
    return "", 0, ""


def text(place: tuple[str, int, str]) -> str:
    """Return the line of the program's text at a place."""
    return linecache.getline(place[0], place[1]).strip()[:300]
