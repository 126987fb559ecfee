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
SQL_CLOCK = "the clock of a database"
COMPILED_DRAW = "a draw in code that Numba compiles"
MOST_QUERY = 10_000
"""Characters of a query that are read."""
MOST_FILES = 32
_CLAUSE = re.compile(
    r"\bGROUP\s+BY\b|\bSELECT\s+DISTINCT\b|\bUSING\s+SAMPLE\b"
    r"|\b(?:first|last|any_value|arbitrary|list|array_agg|string_agg)\s*\(",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"'now'|\bCURRENT_(?:TIMESTAMP|DATE|TIME)\b|\b(?:now|today|get_current_timestamp)\s*\(\s*\)",
    re.IGNORECASE,
)
_DATABASES = ("duckdb", "sqlite3")
_SORTED = re.compile(r"\bORDER\s+BY\b", re.IGNORECASE)
_SELECTS = re.compile(r"\b(?:SELECT|INSERT|UPDATE)\b", re.IGNORECASE)
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
    """Return the files of SQL that were read, if a database may have got them."""
    return [*_files] if any(name in sys.modules for name in _DATABASES) else []


def of_query(query: str) -> Iterator[tuple[int, str]]:
    """Give the lines of a query, from 1, whose rows or values have no order, or that ask for the time."""
    query = query[:MOST_QUERY]
    found = [(each.start(), SQL_CLOCK) for each in _CLOCK.finditer(query)]
    if "duckdb" in sys.modules and not _SORTED.search(query):
        found += [(each.start(), ORDERLESS) for each in _CLAUSE.finditer(query)]
    for at, what in found:
        yield query.count("\n", 0, at) + 1, what


def found(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Give the lines of a program, and what they may do."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield from _compiled_draws(node)
        elif any(name in sys.modules for name in _DATABASES):
            yield from _queries(node)


def _queries(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if _SELECTS.search(node.value[:MOST_QUERY]):
            yield from ((node.lineno + line - 1, what) for line, what in of_query(node.value))
    elif (
        "duckdb" in sys.modules
        and isinstance(node, ast.Call)
        and getattr(node.func, "attr", "") in _AGGREGATES
    ):
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
