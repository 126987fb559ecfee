"""Names in the text of a program, by its syntax tree."""

from __future__ import annotations

import ast

TYPE_CHECKING = False  # importing typing costs milliseconds at the start of every process
if TYPE_CHECKING:
    from collections.abc import Iterator


RUNS = ("run", "run_until_complete")
"""What runs one coroutine to its end."""


def made_by(tree: ast.AST, calls: tuple[str, ...], *, given: bool = False) -> set[str]:
    """Return the names that are given what such a call makes; ``given``: with an argument, such as a size."""
    return {
        last_name(target)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target, value in assigned(node)
        if isinstance(value, ast.Call)
        and called_name(value) in calls
        and (not given or value.args or value.keywords)
    }


def last_name(node: ast.AST) -> str:
    """Return the last name of ``name`` or ``some.name``."""
    return getattr(node, "id", "") or getattr(node, "attr", "")


def called_name(node: ast.Call) -> str:
    """Return the last name of what is called."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def owner_of(node: ast.Call) -> ast.AST:
    """Return what a method is called of."""
    return node.func.value if isinstance(node.func, ast.Attribute) else node


def assigned(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Give what is assigned to what, also of ``a, b = c, d``; asyncio's ``wait(…)`` gives two sets."""
    waited = node.value.value if isinstance(node.value, ast.Await) else None
    if isinstance(node.value, ast.Call) and called_name(node.value) in RUNS and node.value.args:
        waited = node.value.args[0]
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts)
        elif isinstance(target, ast.Tuple) and isinstance(waited, ast.Call) and called_name(waited) == "wait":
            yield from ((each, ast.Set(elts=[])) for each in target.elts)
        else:
            yield target, node.value
