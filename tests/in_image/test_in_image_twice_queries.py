"""What databases are asked, by which lines; experiments with that."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest

from reprobuild.in_image.twice import queries


class Connection:
    """Keeps the statements, and which variables the frame that calls has."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.fetched = 0

    def execute(self, statement: str) -> Connection:
        self.kept.append(statement)
        return self

    def fetchall(self) -> list[Any]:
        self.fetched += 1
        return [[2]] if "current_setting" in self.kept[-1] else []

    def cursor(self) -> Connection:
        return Connection()


@pytest.fixture
def duckdb() -> Iterator[Any]:
    queries._asked.clear()
    default = Connection()
    kind: Any = type("DuckDBPyConnection", (Connection,), {})
    yield SimpleNamespace(
        DuckDBPyConnection=kind,
        connect=lambda *_, **__: kind(),
        execute=default.execute,
        default_connection=lambda: default,
        Error=RuntimeError,
    )
    queries._asked.clear()


def run(module: Any, *statements: str) -> Any:
    """Ask each from a line of its own, from 2 on, of a program called train.py."""
    connection = module.connect()
    lines = "".join(f"connection.execute({each!r})\n" for each in statements)
    exec(compile(f"\n{lines}", "/code/train.py", "exec"), {"connection": connection})
    return connection


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("SELECT a,\n  min(b) FROM t", 2),
        ("SELECT *, row_number() OVER (ORDER BY {ORDER}) AS rn FROM u", 3),
        (" AS rn FROM u", 3),
        ("DELETE FROM v WHERE x = %(x)s", 4),
        ("SELECT other FROM t", None),
        ("WHERE", None),
    ],
)
def test_the_line_that_asks_a_query_is_known(duckdb: Any, text: str, line: int | None) -> None:
    queries.watch(duckdb)
    run(
        duckdb,
        "SELECT a, min(b) FROM t",
        "SELECT * FROM (SELECT *, row_number() OVER (ORDER BY day) AS rn FROM u) x",
        "DELETE FROM v WHERE x = 3",
    )
    asked = queries.asked_at(text)
    assert (None if asked is None else asked[1]) == line


def test_what_a_library_asks_for_the_program_is_known_by_the_programs_line(duckdb: Any) -> None:
    queries.watch(duckdb)
    names: dict[str, Any] = {"connection": duckdb.connect()}
    library = "def read_sql(query):\n    return connection.execute(query)\n"
    exec(compile(library, "/site-packages/pandas/io/sql.py", "exec"), names)
    exec(compile("\n\nread_sql('SELECT a FROM other')", "/code/train.py", "exec"), names)
    asked = queries.asked_at("SELECT a FROM other")
    assert asked is not None
    assert asked[:2] == ("/code/train.py", 3)


def test_before_anything_was_asked_nothing_is_known(duckdb: Any) -> None:
    queries.watch(duckdb)
    assert queries.asked_at("SELECT a FROM t WHERE b") is None


def test_only_the_queries_of_chosen_lines_have_one_thread(duckdb: Any) -> None:
    queries.one_thread_at({("/code/train.py", 3)})(duckdb)
    connection = run(duckdb, "SELECT 1", "SELECT 2", "SELECT 3", "SELECT 4")
    assert connection.kept == [
        *("SELECT 1", "SELECT current_setting('threads')", "SET threads = 1", "SELECT 2"),
        *("SET threads = 2", "SELECT 3", "SELECT 4"),
    ]
    assert connection.fetched == 3  # what nobody fetches keeps a connection from registering a table


def test_each_connection_of_duckdb_draws_from_a_seed(duckdb: Any) -> None:
    queries.seed_draws_of_duckdb(duckdb)
    seeded = ["SET threads = 1; SELECT setseed(0.5)"]
    connection = duckdb.connect("a.db")
    assert [connection.kept, connection.cursor().kept, duckdb.default_connection().kept] == [seeded] * 3


def test_sqlite_draws_from_a_seed() -> None:
    module = SimpleNamespace(connect=sqlite3.connect, dbapi2=SimpleNamespace())
    queries.seed_draws_of_sqlite(module)
    query = "SELECT random(), hex(randomblob(4)), abs(-3)"
    rows = []
    for _ in range(2):
        with closing(module.connect(":memory:")) as connection:
            rows.append(connection.execute(query).fetchone())
    one, other = rows
    assert one == other
    assert len(one[1]) == 8
    assert one[2] == 3


def test_a_query_finds_the_variables_of_who_asks_it_through_any_number_of_watchers(duckdb: Any) -> None:
    def execute(self: Connection, statement: str) -> Connection:
        caller = sys._getframe(1)
        self.kept += [str(caller.f_locals.get("table")), statement]
        return self

    duckdb.DuckDBPyConnection.execute = execute
    queries.watch(duckdb)
    queries.one_thread_at({("/code/train.py", 2)})(duckdb)
    connection = duckdb.connect()
    program = "def main(connection, table):\n    connection.execute('SELECT 1 FROM table')\n"
    names: dict[str, Any] = {}
    exec(compile(program, "/code/train.py", "exec"), names)
    names["main"](connection, [1, 2])
    assert connection.kept[-2:] == ["[1, 2]", "SELECT 1 FROM table"]
