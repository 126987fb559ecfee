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
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.comprehension)) and _is_set(node.iter, named):
            yield node.iter.lineno, "the order of a set"
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in _CALLS:
                yield node.lineno, _CALLS[name]
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
