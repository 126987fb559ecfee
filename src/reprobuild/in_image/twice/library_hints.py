"""Lines at which a library in C may give another order or value: queries of DuckDB's, code for Numba."""

from __future__ import annotations

import ast
import os
import re
import sys

from . import queries

TYPE_CHECKING = False  # importing typing costs milliseconds at the start of every process
if TYPE_CHECKING:
    from collections.abc import Container, Iterator

ORDERLESS = "rows that a query gives in no order"
NUMBERED = "rows that a query numbers in no order"
TIED = "rows that a query orders by what may be equal"
SQL_CLOCK = "the clock of a database"
SQL_DRAW = "what a database draws"
SHARED = "what threads of Numba's change in the order in which they come to it"
COMPILED_DRAW = "a draw in code that Numba compiles"
TRAINED = "vectors that threads of gensim's train at once"
WRITTEN = "rows that threads of Arrow's write in any order"
SHUFFLED = "rows that dask moves by way of a disk"
_WRITERS = ("write_dataset", "write_to_dataset")
_COMPUTES = ("compute", "persist")
_TRAINERS = ("Word2Vec", "Doc2Vec", "FastText")
MOST_QUERY = 10_000
"""Characters of a query that are read."""
MOST_FILES = 32
_CLAUSE = re.compile(
    r"\bGROUP\s+BY\b|\bSELECT\s+DISTINCT\b|\bUSING\s+SAMPLE\b"
    r"|\bJOIN\b|\bUNION\b(?!\s+ALL\b)|\bINTERSECT\b|\bEXCEPT\b"
    r"|\b(?:first|last|any_value|arbitrary|list|array_agg|string_agg)\s*\(",
    re.IGNORECASE,
)
"""What keeps no order: https://duckdb.org/docs/stable/sql/dialect/order_preservation"""
_ANY = re.compile(r"\bSELECT\b", re.IGNORECASE)
_CLOCK = re.compile(
    r"'now'|\bCURRENT_(?:TIMESTAMP|DATE|TIME)\b|\b(?:now|today|get_current_timestamp)\s*\(\s*\)",
    re.IGNORECASE,
)
_DRAW = re.compile(
    r"\b(?:rand|random|newid|uuid|gen_random_uuid)\s*\(\s*\)|\brandomblob\s*\(|\btablesample\b"
    r"|\bUSING\s+SAMPLE\b(?![^;]*\bREPEATABLE\b)",
    re.IGNORECASE,
)
_WINDOW = re.compile(r"\bOVER\s*\((?![^()]*\bORDER\s+BY\b)[^()]*\)", re.IGNORECASE)
_OF_FIRST = r"row_number|(?:first|last|nth)(?:_value)?|any_value|lag|lead|ntile"
_TIED = re.compile(
    rf"\b(?:{_OF_FIRST})\s*\([^()]*\)\s*OVER\s*\((?=[^()]*\bORDER\s+BY\b)"
    r"|\bDISTINCT\s+ON\b|\b(?:arg_?(?:min|max)|(?:min|max)_by)\s*\("
    r"|\b(?:first|last|list|array_agg|string_agg)\s*\((?=[^()]*\bORDER\s+BY\b)"
    r"|\bORDER\s+BY\b(?=[^;()]*\bLIMIT\b)",
    re.IGNORECASE,
)
"""What takes the first of some rows, or numbers them, in an order in which two may be equal."""
_DATABASES = ("duckdb", "sqlite3")
_SORTED = re.compile(r"\bORDER\s+BY\b", re.IGNORECASE)
_STATEMENT = re.compile(r"[^;]+")
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
    for found, what in _clauses(query):
        yield query.count("\n", 0, found.start()) + 1, what


def _clauses(query: str) -> Iterator[tuple[re.Match[str], str]]:
    query = query[:MOST_QUERY]
    for each in _CLOCK.finditer(query) if any(name in sys.modules for name in _DATABASES) else ():
        yield each, SQL_CLOCK
    for each in _DRAW.finditer(query):
        yield each, SQL_DRAW
    if "duckdb" in sys.modules:
        clause = _CLAUSE if queries.keep_order() else _ANY
        for each in _WINDOW.finditer(query):
            yield each, NUMBERED
        for each in _TIED.finditer(query):
            yield each, TIED
        for statement in _STATEMENT.finditer(query):
            if not _SORTED.search(statement[0]):
                for each in clause.finditer(query, *statement.span()):
                    yield each, ORDERLESS


def found(tree: ast.AST, source: list[str]) -> Iterator[tuple[int, str]]:
    """Give the lines of a program, and what they may do; ``source``: all its lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and _is_compiled(node):
            yield from _compiled_draws(node)
            yield from ((line, SHARED) for line, _ in _compiled_races(node))
            continue
        if isinstance(node, ast.Call):
            yield from _by_threads(node)
        yield from _queries(node, source)


def _by_threads(node: ast.Call) -> Iterator[tuple[int, str]]:
    """Give the line of a call that a library answers in threads of its own."""
    line = node.func.end_lineno or node.lineno  # of several lines, that of the name
    if "gensim" in sys.modules:
        yield from _trained(node)
    if "partd" in sys.modules and _name(node.func) in _COMPUTES:
        yield line, SHUFFLED
    if "pyarrow.dataset" in sys.modules and _writes_in_threads(node):
        yield line, WRITTEN


def _queries(node: ast.AST, source: list[str]) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        query = node.value
        for clause, what in _clauses(query) if _SELECTS.search(query[:MOST_QUERY]) else ():
            # A text may be put together of several on lines of their own.
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            own = [line for line in lines if line <= len(source) and clause[0] in source[line - 1]]
            yield own[0] if len(own) == 1 else node.lineno + query.count("\n", 0, clause.start()), what
    elif (
        "duckdb" in sys.modules
        and isinstance(node, ast.Call)
        and getattr(node.func, "attr", "") in _AGGREGATES
    ):
        yield node.lineno, ORDERLESS


def _trained(node: ast.Call) -> Iterator[tuple[int, str]]:
    """Give the line that lets gensim train in several threads, as it does by default."""
    for each in node.keywords:
        if each.arg == "workers" and getattr(each.value, "value", 0) != 1:
            yield each.value.lineno, TRAINED
    told = {each.arg for each in node.keywords}
    if _name(node.func) in _TRAINERS and not told & {"workers", None}:
        yield node.lineno, TRAINED


def _writes_in_threads(node: ast.Call) -> bool:
    given = {each.arg: each.value for each in node.keywords}
    values = {name: getattr(value, "value", None) for name, value in given.items()}
    if values.get("use_threads") is False or values.get("preserve_order") is True:
        return False
    return _name(node.func) in _WRITERS or (_name(node.func) == "to_parquet" and "partition_cols" in given)


def asked(tree: ast.AST, source: list[str]) -> dict[int, tuple[str, int, str]]:
    """Return, by the lines with a hint of a query, the line that asks it, where one is known."""
    found: dict[int, tuple[str, int, str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            place = queries.asked_at(node.value)
            if place is not None:
                found.update((line, place) for line, _ in _queries(node, source) if line not in found)
    return found


def trained_at(tree: ast.AST, path: str) -> dict[int, tuple[str, int, str]]:
    """Return, by the lines that give gensim a number of threads, the first line of the call around them."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    lines = [(line, call.lineno) for call in calls for line, _ in _trained(call) if line != call.lineno]
    return {line: (path, first, "") for line, first in lines}


def loops_at(tree: ast.AST, path: str) -> dict[int, tuple[str, int, str]]:
    """Return, by the lines at which threads of Numba's change something, the line of their loop."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and _is_compiled(node)]
    return {line: (path, loop, "") for each in functions for line, loop in _compiled_races(each)}


def of_asked(known: Container[tuple[str, int]]) -> Iterator[tuple[tuple[str, int, str], str]]:
    """Give the lines that ask such a query, and what it may do; but those whose text has a known line."""
    asked = [(query, place) for query, place in queries.asked() if place[:2] not in known]
    yield from dict.fromkeys((place, what) for query, place in asked for _, what in _clauses(query))


def _is_compiled(function: ast.FunctionDef) -> bool:
    """Return whether Numba compiles a function."""
    decorators = [each.func if isinstance(each, ast.Call) else each for each in function.decorator_list]
    return any(_name(each) in _COMPILERS for each in decorators)


def _compiled_races(function: ast.FunctionDef) -> Iterator[tuple[int, int]]:
    """Give the lines at which loops of Numba's threads change what is not each turn's own, and their loops'.

    https://numba.readthedocs.io/en/stable/user/parallel.html#explicit-parallel-loops
    """
    for loop in ast.walk(function):
        called = getattr(loop, "iter", None)
        if not (
            isinstance(loop, ast.For) and isinstance(called, ast.Call) and _name(called.func) == "prange"
        ):
            continue
        own = {_name(loop.target), *_made_in(loop)}
        for node in ast.walk(loop):
            if isinstance(node, (ast.Assign, ast.AugAssign)):
                for each in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(each, ast.Subscript) and not own & {_name(part) for part in ast.walk(each)}:
                        yield node.lineno, loop.lineno


def _made_in(loop: ast.For) -> set[str]:
    """Return the names of arrays that each turn of a loop makes for itself."""
    return {
        _name(target)
        for node in ast.walk(loop)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets
        if _name(target)
    }


def _compiled_draws(function: ast.FunctionDef) -> Iterator[tuple[int, str]]:
    """Give the lines at which a function that Numba compiles draws."""
    for node in ast.walk(function):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and _name(called.value) == "random" and called.attr != "seed":
            yield called.lineno, COMPILED_DRAW


def _name(node: ast.AST) -> str:
    return getattr(node, "id", "") or getattr(node, "attr", "")
