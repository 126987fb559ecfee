"""Lines at which a library in C may give another order or value: queries of DuckDB's, code for Numba."""

from __future__ import annotations

import ast
import os
import re
import sys

TYPE_CHECKING = False  # importing typing costs milliseconds at the start of every process
if TYPE_CHECKING:
    from collections.abc import Iterator

ORDERLESS = "rows that a query gives in no order"
COMPILED_DRAW = "a draw in code that Numba compiles"
MOST_QUERY = 10_000
"""Characters of a query that are read."""
MOST_FILES = 32
_CLAUSE = re.compile(
    r"\bGROUP\s+BY\b|\bSELECT\s+DISTINCT\b|\bUSING\s+SAMPLE\b"
    r"|\b(?:first|last|any_value|arbitrary|list|array_agg|string_agg)\s*\(",
    re.IGNORECASE,
)
_SORTED = re.compile(r"\bORDER\s+BY\b", re.IGNORECASE)
_SELECTS = re.compile(r"\bSELECT\b", re.IGNORECASE)
_AGGREGATES = ("aggregate", "distinct")
"""Methods of a relation."""
_COMPILERS = ("njit", "jit", "vectorize", "guvectorize")
_files: dict[str, None] = {}
"""Files of SQL that the program has read."""


def read_sql(path: str) -> None:
    """Note a file of SQL that the program reads."""
    if len(_files) < MOST_FILES:
        _files[os.path.abspath(path)] = None  # noqa: PTH100 -- pathlib is slow to import


def sql_files() -> list[str]:
    """Return the files of SQL that were read, if DuckDB may have got them."""
    return [*_files] if "duckdb" in sys.modules else []


def orderless(query: str) -> Iterator[int]:
    """Give the lines of a query whose rows or values have no order, from 1."""
    query = query[:MOST_QUERY]
    if not _SORTED.search(query):
        for found in _CLAUSE.finditer(query):
            yield query.count("\n", 0, found.start()) + 1


def found(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Give the lines of a program, and what they may do."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield from _compiled_draws(node)
        elif "duckdb" in sys.modules:
            yield from _queries(node)


def _queries(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if _SELECTS.search(node.value[:MOST_QUERY]):
            yield from ((node.lineno + line - 1, ORDERLESS) for line in orderless(node.value))
    elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _AGGREGATES:
        yield node.lineno, ORDERLESS


def _compiled_draws(function: ast.FunctionDef) -> Iterator[tuple[int, str]]:
    """Give the lines at which a function that Numba compiles draws."""
    decorators = [each.func if isinstance(each, ast.Call) else each for each in function.decorator_list]
    if not any(_name(each) in _COMPILERS for each in decorators):
        return
    for node in ast.walk(function):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and _name(called.value) == "random" and called.attr != "seed":
            yield called.lineno, COMPILED_DRAW


def _name(node: ast.AST) -> str:
    return getattr(node, "id", "") or getattr(node, "attr", "")
