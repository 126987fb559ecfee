"""Which line of the program leaves a seed out: one that makes a generator, or its caller that gives none.

Of ``def __init__(self, seed=None): self.rng = RandomState(seed)``, who calls it without a seed is told.
"""

from __future__ import annotations

import ast
import linecache
from types import FrameType

from .hints import SEEDED, last_name
from .places import is_users

MOST_CALLERS = 5
_SEEDED = frozenset((*SEEDED, "manual_seed", "Generator"))
_calls: dict[str, list[ast.Call]] = {}
_at: dict[tuple[str, int], list[ast.Call]] = {}


def left_out_at(frame: FrameType) -> tuple[str, int, str] | None:
    """Return the line of the caller that gave no seed to the function of a frame, which seeds with None.

    None where the frame is no function of the program's, or seeds with something else than a parameter of its
    own that has no value.
    """
    if not is_users(frame.f_code.co_filename):
        return None
    names = {
        each.id
        for call in _calls_at(frame)
        if last_name(call.func) in _SEEDED
        for each in (*call.args, *(word.value for word in call.keywords))
        if isinstance(each, ast.Name)
    }
    found: tuple[str, int, str] | None = None
    for _ in range(MOST_CALLERS):
        name = next((each for each in sorted(names) if _is_given_none(frame, each)), None)
        caller = _caller(frame) if name is not None else None
        if name is None or caller is None:
            break
        function, frame = frame.f_code.co_name, caller
        calls = [each for each in _calls_at(frame) if _may_call(each, function)]
        line = calls[0].lineno if calls else frame.f_lineno or 0
        found = frame.f_code.co_filename[-300:], line, frame.f_code.co_name[:200]
        names = {
            each.id
            for call in calls
            for word, each in (
                *((None, arg) for arg in call.args),
                *((w.arg, w.value) for w in call.keywords),
            )
            if isinstance(each, ast.Name) and name in (word, each.id)
        }
    return found


def _is_given_none(frame: FrameType, name: str) -> bool:
    code = frame.f_code
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return name in parameters and frame.f_locals.get(name, name) is None


def _caller(frame: FrameType) -> FrameType | None:
    """Return the next frame of the program's above."""
    above = frame.f_back
    while above is not None and not is_users(above.f_code.co_filename):
        above = above.f_back
    return above


def _may_call(call: ast.Call, function: str) -> bool:
    """Return whether a call is one of a function by its name; of a class, or by another name, it may be."""
    return function == "__init__" or last_name(call.func) == function


def _calls_at(frame: FrameType) -> list[ast.Call]:
    """Return the calls that the line which a frame is at stands in, the innermost first."""
    file, line = frame.f_code.co_filename, frame.f_lineno or 0
    if (file, line) in _at:
        return _at[file, line]
    if file not in _calls:
        try:
            tree = ast.parse("".join(linecache.getlines(file, frame.f_globals)))
            _calls[file] = [each for each in ast.walk(tree) if isinstance(each, ast.Call)]
        except (SyntaxError, ValueError, RecursionError):
            _calls[file] = []
    found = [each for each in _calls[file] if each.lineno <= line <= (each.end_lineno or 0)]
    found.sort(key=lambda each: (each.end_lineno or 0) - each.lineno)
    _at[file, line] = found
    return found
