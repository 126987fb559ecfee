"""Lines of a program that may give another order or value in each run, and that no call of them can show.

Read from the text: a loop over a set, results in the order in which threads end, times of files, the
date. A hint is no finding: it is told beside a value that came from outside.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

MOST_BYTES = 1 << 20
_SETS = ("set", "frozenset")
_CALLS = {
    "as_completed": "the order in which tasks end",
    "imap_unordered": "the order in which tasks end",
    "now": "the date",
    "utcnow": "the date",
    "today": "the date",
    "getmtime": "the time of a file",
    "getctime": "the time of a file",
    "gettempdir": "a temporary name",
    "mkdtemp": "a temporary name",
}
_ATTRIBUTES = {
    **dict.fromkeys(("st_mtime", "st_mtime_ns", "st_ctime", "st_ctime_ns", "st_atime"), "the time of a file"),
    "st_ino": "the number of a file",
}
UNSEEDED = "a generator that the system seeds"
_SEEDED = ("seed", "Random", "default_rng", "RandomState")
_STARTS = {"submit": 0, "map": 0, "imap": 0, "apply_async": 0, "imap_unordered": 0, "run_in_executor": 1}
"""Which argument is the function that other threads then run."""
_FILLS = ("append", "add", "update", "extend", "setdefault", "put", "insert")
_SORTING = ("sorted", "len", "sum", "min", "max", "any", "all", "set", "frozenset")


def of_file(path: str) -> list[tuple[int, str]]:
    """Return the lines with a hint, and what it is; none where the file is no Python that can be read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 -- pathlib is slow to import
            tree = ast.parse(file.read(MOST_BYTES))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return []
    return sorted({(line, what) for line, what in _found(tree) if line})


def _found(tree: ast.AST) -> Iterator[tuple[int, str]]:
    named = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _is_set(node.value, set())
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    harmless = {
        id(argument)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _SORTING
        for argument in node.args
    }
    yield from _threads(tree)
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.comprehension)) and _is_set(node.iter, named):
            yield node.iter.lineno, "the order of a set"
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in _CALLS:
                yield node.lineno, _CALLS[name]
            if name in _SEEDED and not node.args and not node.keywords:
                yield node.lineno, UNSEEDED
            if name in ("list", "tuple", "enumerate", "join", "pop") and id(node) not in harmless:
                walked = [*node.args, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
                if any(_is_set(argument, named) for argument in walked):
                    yield node.lineno, "the order of a set"
        elif isinstance(node, ast.Attribute) and node.attr in _ATTRIBUTES:
            yield node.lineno, _ATTRIBUTES[node.attr]


def _is_set(node: ast.AST, named: set[str]) -> bool:
    if isinstance(node, (ast.Set, ast.SetComp)):
        return True
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in _SETS
    return isinstance(node, ast.Name) and node.id in named


def _threads(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Give the lines of functions that threads run, at which they fill what they share."""
    started = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            at = _STARTS.get(name, -1)
            given = [node.args[at]] if 0 <= at < len(node.args) else []
            given += [word.value for word in node.keywords if word.arg in ("target", "func", "fn")]
            started |= {
                each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "") for each in given
            }
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in started:
            names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
            own = {each.id for each in names if isinstance(each.ctx, ast.Store)}
            for line, value in _filled(node):
                if not (isinstance(value, ast.Name) and value.id in own):
                    yield line, "what threads fill in the order in which they come to it"


def _filled(function: ast.FunctionDef) -> Iterator[tuple[int, ast.expr]]:
    """Give what a function puts something into, with the lines."""
    for node in ast.walk(function):
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((node.lineno, each.value) for each in targets if isinstance(each, ast.Subscript))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FILLS:
            yield node.lineno, node.func.value
