"""What DuckDB is asked by which line of the program; experiments with the queries of single lines, and with
what databases draw.
"""

from __future__ import annotations

import contextlib
import functools
import random
import re
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from types import FrameType
from typing import Any

from .places import here

MOST = 1000
"""Queries that are kept."""
LONGEST = 20_000
"""Characters of one."""
_METHODS = ("execute", "executemany", "sql", "query", "from_query")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}|%\(\w+\)[a-z]|%[sdf]")
"""What a program puts a value in the place of."""
_ORDERLESS = re.compile(r"\bpreserve_insertion_order\s*(?:=|\bTO\b)\s*'?(?:false|0|off|no)\b", re.IGNORECASE)
_LEAST = 8
"""Characters of a piece that tells which query it is of."""
_ONE = "SET threads = 1"
_SEED = 0.5
_asked: dict[str, tuple[str, int, str]] = {}
"""The text of each query, and the line that asked it first."""


def watch(module: Any) -> None:
    """Keep what the program asks DuckDB."""

    def noted(_: Any, query: str, place: tuple[str, int, str]) -> None:
        if len(_asked) < MOST:
            _asked.setdefault(_plain(query[:LONGEST]), place)

    _around(module, noted)


def asked() -> list[tuple[str, tuple[str, int, str]]]:
    """Return each query, and the line that asked it first."""
    return list(_asked.items())


def keep_order() -> bool:
    """Return whether no query lets DuckDB give the rows of a single table in any order."""
    return not any(_ORDERLESS.search(query) for query in _asked)


def asked_at(query: str) -> tuple[str, int, str] | None:
    """Return the line that asked a query which has this text, or was made of it; None: that is not known."""
    pieces = [piece for piece in map(_plain, _PLACEHOLDER.split(query)) if len(piece) >= _LEAST]
    if not pieces:
        return None
    return next((at for text, at in _asked.items() if all(piece in text for piece in pieces)), None)


def one_thread_at(places: Container[tuple[str, int]]) -> Callable[[Any], None]:
    """Return what lets DuckDB answer the queries of some lines in one thread, and others as before."""

    def change(module: Any) -> None:
        alone: list[tuple[Any, int]] = []
        """Connections that have one thread, and how many they had, until the next query of another line."""
        execute = module.DuckDBPyConnection.execute

        def before(connection: Any, _: str, place: tuple[str, int, str]) -> None:
            if place[:2] not in places:
                while alone:
                    owner, threads = alone.pop()
                    with contextlib.suppress(module.Error):  # it may be closed by now
                        execute(owner, f"SET threads = {threads}").fetchall()
            elif all(owner is not connection for owner, _ in alone):
                [[threads]] = execute(connection, "SELECT current_setting('threads')").fetchall()
                alone.append((connection, int(threads)))
                execute(connection, _ONE).fetchall()

        _around(module, before)

    return change


def seed_draws_of_duckdb(module: Any) -> None:
    """Let what DuckDB's queries draw be the same in each run: in one thread, from a seed for each connection.

    https://duckdb.org/docs/stable/sql/functions/numeric.html#setseedx
    """
    execute = module.DuckDBPyConnection.execute

    def seeded(connection: Any) -> Any:
        # A result that nobody fetches keeps the connection from registering a table.
        execute(connection, f"{_ONE}; SELECT setseed({_SEED})").fetchall()
        return connection

    connect, cursor = module.connect, module.DuckDBPyConnection.cursor
    module.connect = functools.wraps(connect)(lambda *given, **named: seeded(connect(*given, **named)))
    module.DuckDBPyConnection.cursor = lambda connection: seeded(cursor(connection))
    seeded(module.default_connection())


def seed_draws_of_sqlite(module: Any) -> None:
    """Let SQLite's functions draw from a seed for each connection."""
    connect = module.connect

    @functools.wraps(connect)
    def connected(*given: Any, **named: Any) -> Any:
        connection = connect(*given, **named)
        drawn = random.Random(0)  # noqa: S311 -- it has to repeat
        connection.create_function("random", 0, lambda: drawn.randrange(-(2**63), 2**63))
        connection.create_function(
            "randomblob", 1, lambda size: drawn.getrandbits(8 * size).to_bytes(size, "big")
        )
        return connection

    module.connect = module.dbapi2.connect = connected


def _plain(query: str) -> str:
    return " ".join(query.split())


def _around(module: Any, before: Callable[[Any, str, tuple[str, int, str]], None]) -> None:
    """Call something before each query of the program's: with its connection, its text and its line."""
    for owner in (module, module.DuckDBPyConnection):
        for name in _METHODS:
            inner = getattr(owner, name, None)
            if inner is not None:
                setattr(owner, name, _asking(module, owner, inner, before))


def _asking(module: Any, owner: Any, inner: Any, before: Callable[..., None]) -> Any:
    @functools.wraps(inner)
    def wrapper(*given: Any, **named: Any) -> Any:
        frame = sys._getframe(1)
        at = int(owner is not module)
        query = given[at] if len(given) > at else named.get("query")
        place = here(2)  # pandas asks for the program, too
        if place[0] and isinstance(query, str):
            connection = given[0] if at else named.get("connection") or module.default_connection()
            before(connection, query, place)
        return call_from(frame, inner, given, named)

    return wrapper


def call_from(frame: FrameType, inner: Any, given: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Call a function as a frame does: DuckDB looks for tables among the variables of the one that calls."""
    own = {"_inner": inner, "_given": given, "_named": named}
    return eval("_inner(*_given, **_named)", frame.f_globals, {**frame.f_locals, **own})  # noqa: S307 -- our text
