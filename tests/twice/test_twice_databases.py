"""SQLite databases that a run wrote: their rows count, their pages do not."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reprobuild.twice.databases import MOST_LINES, database_lines
from reprobuild.twice.recorded_run import HowToRun
from reprobuild.twice.report import verdict, verdict_line
from support.twice import PROGRAMS, compared

TABLE = "CREATE TABLE runs (id INTEGER PRIMARY KEY, at, score)"


def written(path: Path, *statements: str, values: tuple[object, ...] = ()) -> Path:
    with sqlite3.connect(path, isolation_level=None) as database:
        for statement in statements:
            database.execute(statement, values if "?" in statement else ())
    database.close()
    return path


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("clock", "text"),
        ("log", "text"),
        ("result", "parts"),
        ("order", "parts"),
        ("result_in_log", "parts"),
    ],
)
def test_what_a_database_holds_counts(name: str, expected: str, tmp_path: Path) -> None:
    argv = [str(PROGRAMS / "databases.py"), name]
    found = compared(sys.executable, argv, tmp_path, how=HowToRun(trace=False))
    assert verdict(found) == expected, verdict_line(found)
    if name == "log":
        assert {each.kind for each in found.texts} == {"difference beside its rows"}


def test_a_row_is_a_line(tmp_path: Path) -> None:
    path = written(tmp_path / "a.db", TABLE, "INSERT INTO runs VALUES (7, ?, 0.5)", values=("a\nb",))
    head, schema, row = database_lines(path) or ()
    assert head == 'SQLite database: encoding "UTF-8", user_version 0, application_id 0'
    assert schema.startswith('"table" | "runs" | "runs" | "CREATE TABLE runs')
    assert row == 'runs: 7 | 7 | "a\\nb" | 0.5'


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE runs SET score = 0.25",
        "UPDATE runs SET score = '0.5'",
        "UPDATE runs SET score = x'302e35'",
        "UPDATE runs SET at = NULL",
        "UPDATE runs SET at = 'null'",
        "UPDATE runs SET at = 1.0",
        "UPDATE runs SET id = 2",
        "DELETE FROM runs",
        "PRAGMA user_version = 3",
        "CREATE INDEX fast ON runs (score)",
        "CREATE VIEW best AS SELECT max(score) FROM runs",
    ],
)
def test_any_change_of_what_is_held_is_seen(change: str, tmp_path: Path) -> None:
    rows = (TABLE, "INSERT INTO runs VALUES (1, 1, 0.5)")
    one, other = written(tmp_path / "a.db", *rows), written(tmp_path / "b.db", *rows, change)
    assert database_lines(one) is not None
    assert database_lines(one) != database_lines(other)


def test_pages_without_rows_are_not_seen(tmp_path: Path) -> None:
    rows = (TABLE, "INSERT INTO runs VALUES (1, 1, 0.5)")
    one = written(tmp_path / "a.db", *rows)
    other = written(
        tmp_path / "b.db", *rows, "INSERT INTO runs VALUES (2, 1, 3)", "DELETE FROM runs WHERE id = 2"
    )
    assert one.read_bytes() != other.read_bytes()
    assert database_lines(one) == database_lines(other)


def test_a_table_without_row_numbers_is_read(tmp_path: Path) -> None:
    statements = ("CREATE TABLE k (a PRIMARY KEY, b) WITHOUT ROWID", "INSERT INTO k VALUES ('x', 1)")
    assert (database_lines(written(tmp_path / "a.db", *statements)) or ())[-1] == 'k: "x" | 1'


def test_beyond_the_most_lines_rows_count_by_their_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reprobuild.twice.databases.MOST_LINES", 3)
    rows = [f"INSERT INTO runs VALUES ({at}, 0, 0)" for at in range(5)]
    one = database_lines(written(tmp_path / "a.db", TABLE, *rows))
    other = database_lines(written(tmp_path / "b.db", TABLE, *rows, "UPDATE runs SET score = 1 WHERE id = 4"))
    assert one is not None
    assert one[-1].startswith("4 more rows: SHA-256 ")
    assert (one == other) is False
    assert MOST_LINES > 3


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def _overwritten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:4096] + b"\xff" * 4096)


def _amid_a_change(path: Path) -> None:
    path.with_name(path.name + "-journal").write_bytes(b"1")


def _link(path: Path) -> None:
    shutil.move(path, path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize("damage", [_cut, _overwritten, _amid_a_change, _link])
def test_what_cannot_be_read_counts_by_its_bytes(damage: Callable[[Path], None], tmp_path: Path) -> None:
    path = written(tmp_path / "a.db", TABLE, "INSERT INTO runs VALUES (1, 1, 0.5)")
    damage(path)
    assert database_lines(path) is None


def test_a_schema_calls_nothing(tmp_path: Path) -> None:
    """A column that is computed as it is read, a check, and names with quotes."""
    table = 'CREATE TABLE "t""x" (a CHECK (length(hex(zeroblob(9))) = 18), b AS (hex(zeroblob(a))))'
    path = written(tmp_path / "a.db", table, 'INSERT INTO "t""x" VALUES (1000000)')
    assert (database_lines(path) or ())[-1] == 't\\"x: 1 | 1000000'


@pytest.mark.parametrize(("value", "equal"), [("0", True), ("1", False)])
def test_the_order_of_constraints_does_not_count(value: str, equal: bool, tmp_path: Path) -> None:
    """SQLAlchemy has them in a set."""
    ends = ["CONSTRAINT a CHECK (id > 0)", "CONSTRAINT b CHECK (score > {})", "PRIMARY KEY (id)"]
    found: list[tuple[str, ...] | None] = []
    for order, given in (((0, 1, 2), "0"), ((1, 2, 0), value)):
        behind = ", \n\t".join(ends[at].format(given) for at in order)
        statement = f"CREATE TABLE runs (\n\tid INTEGER, \n\tscore INTEGER, \n\t{behind}\n)"
        found.append(database_lines(written(tmp_path / f"{len(found)}.db", statement)))
    assert (found[0] == found[1]) == equal
