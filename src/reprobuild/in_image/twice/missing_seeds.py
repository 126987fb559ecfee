"""Which line of the program leaves a seed out: one that makes a generator, or its caller that gives none.

For ``def __init__(self, seed=None): self.rng = RandomState(seed)`` it is the call without a seed; for
``if rng is None: rng = default_rng()`` it is this line, with the call beside it.
"""

from __future__ import annotations

import ast
import dis
import linecache
import sys
from collections.abc import Iterator, Sequence
from types import FrameType

from .hints import SEEDED
from .places import is_users
from .syntax import last_name

MOST_CALLERS = 5
_VARARGS, _VARKEYWORDS = 4, 8
"""Flags of code, as inspect has them, which takes long to import."""
_RESETS = "reset"
"""What an environment of Gymnasium's takes its seed by."""
_SEEDED = frozenset((*SEEDED, "manual_seed", "Generator", _RESETS))
_SEEDS = frozenset(("seed", "random_seed", "random_state", "rng", "generator"))
_UNKNOWN = object()
_trees: dict[str, list[ast.AST]] = {}
"""By file, its calls and what takes a default."""
_tested: dict[str, list[ast.expr]] = {}
"""By file, the seeds that it takes for true or false."""
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
        for word, each in (*((None, arg) for arg in call.args), *((w.arg, w.value) for w in call.keywords))
        if isinstance(each, ast.Name) and (word == "seed" or last_name(call.func) != _RESETS)
    } | _handed_on(frame)
    return _who_gave_none(frame, names)


def _handed_on(frame: FrameType) -> set[str]:
    """Return the names that the line of a frame hands on as seeds: ``PCA(random_state=random_state)``."""
    words = (word for call in _calls_at(frame) for word in call.keywords)
    return {word.value.id for word in words if word.arg in _SEEDS and isinstance(word.value, ast.Name)}


def defaulted_at(place: tuple[str, int, str], *, is_seed: bool = False) -> tuple[str, int, str] | None:
    """Return the line of the caller that gave None to the function at a place, which takes a default for it.

    None where this function has not been called, or where the line takes no default for a parameter. What
    seeds a generator (``is_seed``) is also the default of a parameter that is called so.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (frame.f_code.co_filename[-300:], frame.f_lineno) != place[:2]:
        frame = frame.f_back
    if frame is None or not is_users(frame.f_code.co_filename):
        return None
    names = {
        name
        for each in _nodes(frame)
        for name, first, last in _defaults(each)
        if first <= (frame.f_lineno or 0) <= last
    } | _handed_on(frame)
    # Gymnasium's environments make their generator as they first draw, where reset() got no seed.
    found = _who_gave_none(frame, names | _SEEDS) if names or is_seed else None
    return found or (counts_zero_as_none(frame) if is_seed else None)


def counts_zero_as_none(frame: FrameType) -> tuple[str, int, str] | None:
    """Return the line of a function that led here, or called the one that did, at which a seed of 0 counts as
    none: ``if seed:``.
    """
    at: FrameType | None = frame
    for _ in range(MOST_CALLERS):
        if at is None:
            break
        code = at.f_code
        seeds = _seeds_tested(at) if is_users(code.co_filename) else []
        last = max((line for _, line in dis.findlinestarts(code) if line), default=0) if seeds else 0
        for tested in seeds:
            value = _value(tested, at)
            if type(value) is int and value == 0 and code.co_firstlineno <= tested.lineno <= last:
                return code.co_filename[-300:], tested.lineno, code.co_name[:200]
        at = at.f_back
    return None


def _seeds_tested(frame: FrameType) -> list[ast.expr]:
    """Return the seeds that the file of a frame takes for true or false."""
    file = frame.f_code.co_filename
    if file not in _tested:
        truths = [
            node.values[0] if isinstance(node, ast.BoolOp) else node.test
            for node in _nodes(frame)
            if isinstance(node, (ast.If, ast.IfExp, ast.BoolOp))
        ]
        plain = [each.operand if isinstance(each, ast.UnaryOp) else each for each in truths]
        _tested[file] = [each for each in plain if last_name(each) in _SEEDS]
    return _tested[file]


def takes_none(frame: FrameType, function: str) -> bool:
    """Return whether a call of a function at the line of a frame has arguments, all of them known as None."""
    for call in _calls_at(frame):
        given = [*call.args, *(word.value for word in call.keywords)]
        if last_name(call.func) == function and given:
            return all(_value(each, frame) is None for each in given)
    return False


def _value(expression: ast.expr, frame: FrameType) -> object:
    """Return what a name, or an attribute of one, has in a frame, where no code has to run for that."""
    if isinstance(expression, ast.Constant):
        return expression.value
    if isinstance(expression, ast.Name):
        return frame.f_locals.get(expression.id, frame.f_globals.get(expression.id, _UNKNOWN))
    if isinstance(expression, ast.Attribute):
        return getattr(_value(expression.value, frame), "__dict__", {}).get(expression.attr, _UNKNOWN)
    return _UNKNOWN


def _defaults(node: ast.AST) -> Iterator[tuple[str, int, int]]:
    """Yield the name that a default replaces when it is None, and the default's first and last line."""
    taken: Sequence[ast.AST] = ()
    if isinstance(node, (ast.If, ast.IfExp)):
        test = node.test
        is_not = isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.IsNot, ast.NotEq))
        branch = node.orelse if is_not or isinstance(test, ast.Name) else node.body
        taken = branch if isinstance(branch, list) else (branch,)
        tested = test.left if isinstance(test, ast.Compare) else test
        tested = tested.operand if isinstance(tested, ast.UnaryOp) else tested
    elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        tested, taken = node.values[0], node.values[1:]
    else:
        return
    if isinstance(tested, ast.Name) and taken:
        yield tested.id, getattr(taken[0], "lineno", 0), getattr(taken[-1], "end_lineno", None) or 0


def _who_gave_none(frame: FrameType, names: set[str]) -> tuple[str, int, str] | None:
    """Return the line of the caller that gave one of the names no value: its caller, if it hands None on."""
    found: tuple[str, int, str] | None = None
    asked = ""
    for _ in range(MOST_CALLERS):
        name = next((each for each in sorted(names) if _is_given_none(frame, each, asked)), None)
        caller = _caller(frame) if name is not None else None
        if name is None or caller is None:
            break
        asked = asked if _is_mapping(frame, name) else name
        function, frame = frame.f_code.co_name, caller
        calls = [each for each in _calls_at(frame) if _may_call(each, function)]
        line = calls[0].lineno if calls else frame.f_lineno or 0
        found = frame.f_code.co_filename[-300:], line, frame.f_code.co_name[:200]
        given = [
            pair
            for call in calls
            for pair in (*((None, arg) for arg in call.args), *((w.arg, w.value) for w in call.keywords))
        ]
        names = {
            each.id
            for word, each in given
            if isinstance(each, ast.Name)
            and (asked in (word, each.id) or (word is None and _is_mapping(frame, each.id)))
        }
    return found


def _is_given_none(frame: FrameType, name: str, asked: str) -> bool:
    """Return whether the function of a frame was given None by a name; of ``**options``, for the name
    ``asked``.
    """
    if _is_mapping(frame, name):
        options = frame.f_locals.get(name)
        return isinstance(options, dict) and options.get(asked) is None
    code = frame.f_code
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return name in parameters and frame.f_locals.get(name, name) is None


def _is_mapping(frame: FrameType, name: str) -> bool:
    """Return whether a name is that of all other arguments by keyword: ``**options``."""
    code = frame.f_code
    if not code.co_flags & _VARKEYWORDS:
        return False
    at = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & _VARARGS)
    return name == code.co_varnames[at]


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
    found = [
        each
        for each in _nodes(frame)
        if isinstance(each, ast.Call) and each.lineno <= line <= (each.end_lineno or 0)
    ]
    found.sort(key=lambda each: (each.end_lineno or 0) - each.lineno)
    _at[file, line] = found
    return found


def _nodes(frame: FrameType) -> list[ast.AST]:
    """Return the calls, conditions and choices of the file that a frame is in."""
    file = frame.f_code.co_filename
    if file not in _trees:
        try:
            tree = ast.parse("".join(linecache.getlines(file, frame.f_globals)))
            _trees[file] = [
                each for each in ast.walk(tree) if isinstance(each, (ast.Call, ast.If, ast.IfExp, ast.BoolOp))
            ]
        except (SyntaxError, ValueError, RecursionError):
            _trees[file] = []
    return _trees[file]
