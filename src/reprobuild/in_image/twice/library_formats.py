"""What files hold whose format only their library reads, as lines: Parquet, Feather, HDF5 and DuckDB.

A time in such a file moves bytes all over it. The program that wrote it has its library, and so tells at its
end what is in it. The lines belong to the file's SHA-256: of one that changes afterwards nothing is known.
"""

from __future__ import annotations

import atexit
import functools
import math
import os
import struct
import sys
from typing import Any

from .drawn_names import Instead
from .watching import Watcher

MOST_FILES = 64
MOST_BYTES = 32 << 20
"""Of one file."""
MOST_LINES = 50_000
"""Lines of one file that are written out; the rest is digested in blocks of `BLOCK` lines."""
BLOCK = 1000
BATCH = 1 << 16
"""Rows of a large Parquet table that share a digest."""
MOST_VALUES = 1_000_000
"""Values of a file that are read one by one."""
MOST_HASHED = 1 << 26
"""Values that a library itself reads and digests: a few bytes may stand for billions of equal ones."""
LONGEST = 2000
"""Characters of a value; of a longer one the rest is a digest."""
_paths: dict[str, str] = {}
"""The files, with what reads each."""


def note(path: Any, reader: str) -> None:
    """Note that a library writes a file."""
    try:
        named = os.fsdecode(path if isinstance(path, (str, bytes, os.PathLike)) else path.name)
    except (AttributeError, TypeError):  # memory, or a descriptor
        return
    name = os.path.abspath(named)  # noqa: PTH100 -- pathlib is slow to import
    if len(_paths) < MOST_FILES:
        _paths[name] = reader
    # Before its library's own end, after which h5py converts no more.
    atexit.unregister(write)
    atexit.register(write)


class _Renaming(Instead):
    """Takes the place of what renames a file, which may get its own name once it is whole."""

    def __call__(self, *given: Any, **named: Any) -> None:
        """Rename it, and note its new name."""
        self._inner(*given, **named)
        self._act(*given, **named)


def _moved(src: Any, dst: Any, *, src_dir_fd: Any = None, dst_dir_fd: Any = None) -> None:
    if _paths and src_dir_fd is None and dst_dir_fd is None:
        reader = _paths.pop(os.path.abspath(os.fsdecode(src)), None)  # noqa: PTH100 -- pathlib is slow to import
        if reader is not None:
            note(dst, reader)


def write() -> None:
    """Write what the files hold."""
    if not _paths:
        return
    import hashlib  # noqa: PLC0415 -- only where there are such files
    import json  # noqa: PLC0415 -- as above

    told = []
    for path, reader in list(_paths.items()):
        try:
            if os.path.islink(path) or not 0 < os.path.getsize(path) <= MOST_BYTES:  # noqa: PTH114, PTH202 -- as above
                continue
            before = _digest(path, hashlib)
            lines = list(_told(READERS[reader](path), hashlib))
            if _digest(path, hashlib) == before:
                told.append({"sha256": before, "lines": lines})
        except Exception:  # noqa: BLE001, S112 -- of any library: then the bytes are compared
            continue
    _paths.clear()
    if told:
        name = f"{os.environ['REPROBUILD_TWICE']}/{os.getpid()}.contents"
        with open(f"{name}.unfinished", "w") as file:  # noqa: PTH123 -- as above
            file.writelines(json.dumps(each) + "\n" for each in told)
        os.replace(f"{name}.unfinished", name)  # noqa: PTH105 -- as above


def _digest(path: str, hashlib: Any) -> str:
    found = hashlib.sha256()
    with open(path, "rb") as file:  # noqa: PTH123 -- as above
        while block := file.read(1 << 20):
            found.update(block)
    return str(found.hexdigest())


def _told(given: Any, hashlib: Any) -> Any:
    """Yield lines up to `MOST_LINES`, and digests of those that follow."""
    block = hashlib.sha256()
    lines = (piece for line in given for piece in _pieces(line, hashlib))
    number = -1
    for number, line in enumerate(lines):
        if number < MOST_LINES:
            yield line
            continue
        _few(number)
        block.update(f"{line}\n".encode(errors="surrogatepass"))
        if (number - MOST_LINES + 1) % BLOCK == 0:
            yield f"up to line {number + 1}: {_letters(block)}"
    if number >= MOST_LINES:
        yield f"{number + 1} lines: {_letters(block)}"


def _pieces(line: str, hashlib: Any) -> Any:
    """Yield a line; one that is too long in pieces, as a list whose numbers are longer in the next run."""
    if len(line) <= LONGEST:
        yield line
        return
    import re  # noqa: PLC0415 -- only where there is such a line

    for piece in re.split(r"(?<=, )|(?<=\\n)", line):
        rest = _letters(hashlib.sha256(piece.encode(errors="surrogatepass")))
        yield f"…{piece[:LONGEST]}{f' {rest}' if len(piece) > LONGEST else ''}"


def _letters(digest: Any) -> str:
    """Return a digest without digits, which could be taken for a measured number."""
    return str(digest.hexdigest()).translate(str.maketrans("0123456789", "ghijklmnop"))


def _few(count: int, most: int = 0) -> None:
    """Raise OverflowError where there is more than is told: before it is all in memory."""
    if count > (most or MOST_VALUES):
        raise OverflowError("too much to tell")


def _parquet(path: str) -> Any:
    file = sys.modules["pyarrow.parquet"].ParquetFile(path)
    yield f"Parquet: {file.metadata.num_row_groups} groups of rows, format {file.metadata.format_version}"
    # The schema is encoded here once more, with its metadata, such as a date: it is written out below.
    more = {key: value for key, value in (file.metadata.metadata or {}).items() if key != b"ARROW:schema"}
    yield f"metadata {_shown(more)}"
    values = file.metadata.num_rows * max(1, file.metadata.num_columns)
    _few(values, MOST_HASHED)
    if values > MOST_VALUES:
        yield from _by_batches(file)
    else:
        yield from _table(file.read(), file.schema_arrow)


def _by_batches(file: Any) -> Any:
    """Yield a digest of each batch of rows, as Arrow serializes them."""
    import hashlib  # noqa: PLC0415 -- only where there is such a table

    yield from _schema(file.schema_arrow)
    for number, batch in enumerate(file.iter_batches(batch_size=BATCH)):
        told = sys.modules["pyarrow"].BufferOutputStream()
        with sys.modules["pyarrow"].ipc.new_stream(told, batch.schema.remove_metadata()) as stream:
            stream.write_batch(batch.replace_schema_metadata())
        yield f"rows {number}: {_letters(hashlib.sha256(told.getvalue()))}"


def _feather(path: str) -> Any:
    table = sys.modules["pyarrow.feather"].read_table(path)
    _few(table.num_rows * max(1, table.num_columns))
    yield "Feather"
    yield from _table(table, table.schema)


def _schema(schema: Any) -> Any:
    for field in schema:
        yield f"column {field.name!r}: {str(field.type)!r} {field.nullable} {_shown(field.metadata)}"
    yield f"metadata {_shown(schema.metadata)}"
    # All else of it, as what is noted of fields inside of fields.
    yield f"schema x'{schema.remove_metadata().serialize().to_pybytes().hex()}'"


def _table(table: Any, schema: Any) -> Any:
    yield from _schema(schema)
    for row in zip(*(column.to_pylist() for column in table.columns)):  # several may have one name
        yield " | ".join(map(_shown, row))


def _polars(path: str) -> Any:
    polars = sys.modules["polars"]
    plan = polars.scan_parquet(path)
    schema = plan.collect_schema()
    _few(plan.select(polars.len()).collect().item() * max(1, len(schema)))
    yield "Parquet of Polars"
    if hasattr(polars, "read_parquet_metadata"):
        yield f"metadata {_shown(polars.read_parquet_metadata(path))}"
    yield f"columns {list(schema.items())!r}"
    if any(word in repr([*schema.values()]) for word in ("'ns'", "Time", "Object")):
        raise TypeError("values that Python does not show as they are, as it has no nanoseconds")
    for row in plan.collect().iter_rows():
        yield " | ".join(map(_shown, row))


def _hdf5(path: str) -> Any:
    h5py = sys.modules["h5py"]
    with h5py.File(path, "r") as file:
        found: list[tuple[str, Any]] = [("/", file)]
        file.visititems(lambda name, each: found.append((name, each)))
        _few(sum(getattr(each, "size", 1) or 1 for _, each in found))
        names = {h5py.h5o.get_info(each.id).addr: name for name, each in found}
        yield "HDF5"
        for name, each in found:
            is_array = isinstance(each, h5py.Dataset)
            shape = (each.shape, each.dtype, each.chunks) if is_array else ""
            yield f"{name!r}: {type(each).__name__} {shape}"
            for key in sorted(each.attrs):
                value = each.attrs[key]
                kind = f"{getattr(value, 'dtype', '')} {getattr(value, 'shape', '')}"
                yield f"{name!r} attribute {key!r}: {kind} {_shown(value)}"
            if is_array:
                value = each[()]
                for one in value.ravel() if hasattr(value, "ravel") else [value]:
                    yield f"{name!r}: {_shown(one)}"
            elif isinstance(each, h5py.Group):
                for key in each:
                    yield f"{name!r} has {_link(h5py, each, key, names)}"


def _link(h5py: Any, group: Any, key: str, names: Any) -> str:
    """Say what a name in a group stands for."""
    link = group.get(key, getlink=True)
    if isinstance(link, h5py.HardLink):
        return f"{key!r}: {names[h5py.h5o.get_info(group[key].id).addr]!r}"
    return f"{key!r}: {type(link).__name__} {getattr(link, 'filename', '')!r} {link.path!r}"


_BESIDE_TABLES = (
    "SELECT sql FROM duckdb_views() WHERE NOT internal ORDER BY ALL",
    "SELECT sql FROM duckdb_indexes() ORDER BY ALL",
    "SELECT sql, last_value FROM duckdb_sequences() ORDER BY ALL",
    "SELECT schema_name, comment FROM duckdb_schemas() WHERE NOT internal ORDER BY ALL",
    "SELECT schema_name, type_name, logical_type, labels FROM duckdb_types() WHERE NOT internal ORDER BY ALL",
    (
        "SELECT schema_name, function_name, parameters, macro_definition FROM duckdb_functions()"
        " WHERE NOT internal ORDER BY ALL"
    ),
    "SELECT table_name, column_name, comment FROM duckdb_columns() WHERE NOT internal ORDER BY ALL",
    "SELECT view_name, comment FROM duckdb_views() WHERE NOT internal ORDER BY ALL",
)


def _duckdb(path: str) -> Any:
    duckdb = sys.modules["duckdb"]
    try:
        connection = duckdb.connect(path, read_only=True)
    except duckdb.ConnectionException:  # the program has it open
        connection = duckdb.connect(path)
    try:
        cursor = connection.cursor()
        yield "DuckDB"
        tables = cursor.execute(
            "SELECT schema_name, table_name, sql, comment FROM duckdb_tables()"
            " WHERE database_name = current_database() AND NOT internal ORDER BY ALL"
        ).fetchall()
        for query in _BESIDE_TABLES:
            for row in cursor.execute(query).fetchall():
                yield f"beside tables: {_shown(row)}"
        sizes = []
        for schema, table, *told in tables:
            yield f"table {schema!r}.{table!r}: {_shown(told)}"
            name = f"{_quoted(schema)}.{_quoted(table)}"
            [(many,)] = cursor.execute(f"SELECT count(*) FROM {name}").fetchall()  # noqa: S608 -- quoted
            sizes.append((many, table, name))
        for many, table, name in sorted(sizes):  # what comes after many lines is told by digests
            # As text: Python's values have no nanoseconds, and a month in an interval is 30 days.
            columns = [row[0] for row in cursor.execute(f"DESCRIBE {name}").fetchall()]
            if many * len(columns) > MOST_VALUES:
                _few(many * len(columns), MOST_HASHED)
                yield f"{table!r}: {_letters(_of_rows(cursor, name, columns))}"
                continue
            rows = cursor.execute(f"SELECT COLUMNS(*)::VARCHAR FROM {name}")  # noqa: S608 -- quoted
            while some := rows.fetchmany(1000):
                for row in some:
                    yield f"{table!r}: {' | '.join(map(_shown, row))}"
    finally:
        connection.close()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _of_rows(cursor: Any, name: str, columns: list[str]) -> Any:
    """Return the digest of a table's rows, each of which DuckDB digests itself."""
    import hashlib  # noqa: PLC0415 -- only where there is such a table

    found = hashlib.sha256()
    row = f"sha256({' || '.join(map(_with_length, columns))})"
    rows = cursor.execute(f"SELECT {row} FROM {name}")  # noqa: S608 -- quoted
    while some := rows.fetchmany(BATCH):
        found.update("".join(each for (each,) in some).encode())
    return found


def _with_length(column: str) -> str:
    """Return what DuckDB makes a column's text of, with its length, so that no other row has the same."""
    text = f"{_quoted(column)}::VARCHAR"
    return f"coalesce(length({text}) || ':' || {text}, 'NULL')"


def _shown(value: Any) -> str:
    """Return a value so that no other one of its column looks like it. Raises TypeError for an unknown type.

    What ``repr`` leaves out, as the middle of a long array, would be hidden.
    """
    kind = type(value)
    if kind in (list, tuple):
        return f"[{', '.join(map(_shown, value))}]"
    if kind is dict:
        return f"{{{', '.join(f'{_shown(key)}: {_shown(each)}' for key, each in value.items())}}}"
    if kind.__module__ == "numpy" and hasattr(value, "tolist"):
        return _shown(list(value.ravel()) if value.dtype.hasobject else value.tolist())
    return _leaf(value, kind)


def _leaf(value: Any, kind: type) -> str:
    if kind in (bytes, bytearray):
        text = bytes(value).decode("ascii", "replace")
        if len(value) > 1 and text.replace("\n", "").isprintable() and text.isascii():
            return f"b{text!r}"
        return f"x'{value.hex()}'"
    if kind is float and math.isnan(value):
        return f"NaN {struct.pack('>d', value).hex()}"
    if kind in _PLAIN:
        return repr(value)
    package = kind.__module__.partition(".")[0]
    if package in ("datetime", "pandas") and hasattr(value, "isoformat"):
        return str(value.isoformat())
    if package in _BY_TEXT:
        return f"{kind.__name__} {value}"
    raise TypeError(f"a value of type {kind.__module__}.{kind.__name__}")


_PLAIN = (bool, int, float, complex, str, type(None))
_BY_TEXT = ("decimal", "uuid", "datetime")
"""Modules whose values say themselves by their text."""


READERS = {
    "parquet": _parquet,
    "feather": _feather,
    "polars": _polars,
    "hdf5": _hdf5,
    "duckdb": _duckdb,
}


def _around(owner: Any, name: str, reader: str, at: int, *, writes: Any = None) -> None:
    """Note the path that a function is given, if it writes."""
    inner = getattr(owner, name)

    @functools.wraps(inner)
    def wrapper(*arguments: Any, **named: Any) -> Any:
        result = inner(*arguments, **named)
        if writes is None or writes(*arguments, **named):
            for path in (*arguments[at : at + 1], *(named.get(each) for each in _NAMES)):
                if path is not None:
                    note(path, reader)
        return result

    setattr(owner, name, wrapper)


_NAMES = ("where", "dest", "name", "database", "file", "path")


def _opened_to_write(*arguments: Any, **named: Any) -> bool:
    return str(named.get("mode", arguments[2] if len(arguments) > 2 else "r")) != "r"


def _not_read_only(*_: Any, read_only: bool = False, **__: Any) -> bool:
    return not read_only


def install(watcher: Watcher) -> None:
    """Follow what is there, and what is imported later."""
    watcher.after("pyarrow.parquet.core", lambda m: _around(m.ParquetWriter, "__init__", "parquet", 1))
    watcher.after("pandas.io.parquet", lambda m: _around(m, "to_parquet", "parquet", 1))
    watcher.after("pyarrow.feather", lambda m: _around(m, "write_feather", "feather", 1))
    watcher.after("h5py._hl.files", lambda m: _around(m.File, "__init__", "hdf5", 1, writes=_opened_to_write))
    watcher.after("duckdb", lambda m: _around(m, "connect", "duckdb", 0, writes=_not_read_only))
    watcher.after("polars.dataframe.frame", lambda m: _around(m.DataFrame, "write_parquet", "polars", 1))
    watcher.after("polars.lazyframe.frame", lambda m: _around(m.LazyFrame, "sink_parquet", "polars", 1))
    for name in ("rename", "replace"):
        setattr(os, name, _Renaming(getattr(os, name), _moved))
    os.register_at_fork(after_in_child=_paths.clear)
