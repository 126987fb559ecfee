"""SQLite databases as lines of text: what they hold, whatever their pages look like. Untrusted bytes.

They are opened as https://www.sqlite.org/security.html advises for a file of others: nothing is written, no
function is called, no virtual table is read, and there is a time limit.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from .event_files import bounded

HEAD = "SQLite database"
"""How the first line begins."""
_MAGIC = b"SQLite format 3\0"
_BESIDE = ("-wal", "-shm")
"""Ends of the names of the log of the last changes, and of its index: both begin with random numbers."""
MOST_BYTES = 256 << 20
MOST_LINES = 100_000
_MOST_SECONDS = 30.0
_LONGEST = 64 << 20
"""Bytes of a value."""
_LONGEST_TEXT = 2000
"""Characters of a value up to which it is shown as text."""
_SETTINGS = ("trusted_schema=OFF", "ignore_check_constraints=ON", "cell_size_check=ON", "mmap_size=0")
_CONSTRAINT = re.compile(rb"\s*(?:CONSTRAINT|CHECK|UNIQUE|FOREIGN|PRIMARY)\b")
_READS = (sqlite3.SQLITE_READ, sqlite3.SQLITE_SELECT)


def database_lines(path: Path) -> tuple[str, ...] | None:
    """Return a line for each row of a database; of its log and that one's index, one line each; None: it is
    neither, or it cannot be read.
    """
    for end in _BESIDE:
        if path.name.endswith(end):
            base = path.with_name(path.name.removesuffix(end))
            return None if database_lines(base) is None else (f"{HEAD}: {end[1:]} of {base.name}",)
    try:
        return _rows(path) if _is_database(path) else None
    except (OSError, ValueError, OverflowError, sqlite3.Error):
        return None


def _is_database(path: Path) -> bool:
    """Return whether a file is a database of a size that is read, and in no unfinished change."""
    if path.is_symlink() or not path.is_file() or not len(_MAGIC) < path.stat().st_size <= MOST_BYTES:
        return False
    with path.open("rb") as file:
        magic = file.read(len(_MAGIC))
    journal = path.with_name(path.name + "-journal")
    return magic == _MAGIC and not (journal.exists() and journal.stat().st_size)


def _rows(path: Path) -> tuple[str, ...] | None:
    log = path.with_name(path.name + _BESIDE[0])
    if log.is_symlink() or not log.is_file() or not log.stat().st_size:
        return bounded(_read(path, "mode=ro&immutable=1"), "rows", MOST_LINES)
    if log.stat().st_size > MOST_BYTES:
        return None
    with tempfile.TemporaryDirectory() as folder:  # to take the log in, it has to write
        for each in (path, log):
            shutil.copyfile(each, Path(folder) / each.name)
        return bounded(_read(Path(folder) / path.name, "mode=rw"), "rows", MOST_LINES)


class _Text(bytes):
    """A text, which may be no UTF-8; a blob is plain bytes."""


def _read(path: Path, how: str) -> Iterator[str]:
    end = time.monotonic() + _MOST_SECONDS
    database = sqlite3.connect(f"file:{quote(str(path))}?{how}", uri=True)
    try:
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
        database.set_progress_handler(lambda: int(time.monotonic() > end), 10_000)
        database.text_factory = _Text
        for setting in _SETTINGS:
            database.execute(f"PRAGMA {setting}")
        told = [
            f"{name} {_shown(database.execute(f'PRAGMA {name}').fetchone()[0])}"
            for name in ("encoding", "user_version", "application_id")
        ]
        yield f"{HEAD}: {', '.join(told)}"
        tables = dict[str, list[str]]()
        schema = "SELECT type, name, tbl_name, sql, rootpage FROM sqlite_master ORDER BY type, name"
        for kind, name, of_table, statement, page in database.execute(schema).fetchall():
            in_order = _in_order(statement) if isinstance(statement, _Text) else statement
            yield " | ".join(_shown(each) for each in (kind, name, of_table, in_order))
            if kind == b"table" and page:  # a virtual one has no page
                table = name.decode()
                columns = database.execute(f"PRAGMA table_xinfo({_quoted(table)})").fetchall()
                # Those that are computed from the others are left out.
                tables[table] = [_quoted(column[1].decode()) for column in columns if not column[-1]]
        for table in ("sqlite_master", *tables):  # one by one, as a check of all calls virtual tables
            if database.execute(f"PRAGMA quick_check({_quoted(table)})").fetchone() != (b"ok",):
                raise ValueError(f"table {table} is damaged")
        database.set_authorizer(lambda action, *_: _allowed(action))
        for table, columns in tables.items():
            given = ", ".join(columns)
            try:
                rows = database.execute(f"SELECT rowid, {given} FROM {_quoted(table)} ORDER BY rowid")  # noqa: S608
            except sqlite3.OperationalError:  # WITHOUT ROWID: in the order of its key
                rows = database.execute(f"SELECT {given} FROM {_quoted(table)}")  # noqa: S608 -- quoted
            for row in rows:
                yield f"{json.dumps(table)[1:-1]}: {' | '.join(map(_shown, row))}"
    finally:
        database.close()


def _in_order(statement: _Text) -> _Text:
    """Return a statement that makes a table with the constraints behind its columns in order, as sets of
    SQLAlchemy's give them in any.
    """
    lines = statement.split(b"\n")
    places = [at for at, line in enumerate(lines) if _CONSTRAINT.match(line)]
    ends = sorted(lines[at].rstrip(b", ") for at in places)
    for at, end in zip(places, ends, strict=True):
        lines[at] = end
    return _Text(b"\n".join(lines))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _allowed(action: int) -> int:
    return sqlite3.SQLITE_OK if action in _READS else sqlite3.SQLITE_DENY


def _shown(value: object) -> str:
    """Return a value so that no other one looks like it."""
    if not isinstance(value, bytes):
        return "null" if value is None else repr(value)
    try:
        shown = json.dumps(value.decode()) if isinstance(value, _Text) else f"x'{value.hex()}'"
    except UnicodeDecodeError:
        shown = f"text x'{value.hex()}'"
    if len(shown) <= _LONGEST_TEXT:
        return shown
    return f"{len(value)} bytes, SHA-256 {hashlib.sha256(shown.encode()).hexdigest()}"
