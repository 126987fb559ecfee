"""Writes pairs of files that differ in one thing, and prints the pairs that a library tells as equal.

``python formats_apart.py LIBRARY``, with the folder above the recorder's in PYTHONPATH.
"""

import datetime
import sys
from pathlib import Path

from twice.library_formats import READERS


def by_pyarrow(path, which):
    import numpy
    import pyarrow

    value = (0.25, 0.5)[which]
    yield "value", pyarrow.table({"a": [value]})
    yield "nested", pyarrow.table({"a": [[{"b": [value] * 2000}]]})
    yield "one of two columns of one name", pyarrow.table([[1.0], [value]], names=["a", "a"])
    yield "column's name", pyarrow.table({("a", "b")[which]: [1.0]})
    yield "type", pyarrow.table({"a": pyarrow.array([1], (pyarrow.int32(), pyarrow.int64())[which])})
    yield "metadata", pyarrow.table({"a": [1.0]}).replace_schema_metadata({"loss": str(value)})
    yield "null", pyarrow.table({"a": pyarrow.array([1.0, (None, 2.0)[which]])})
    yield "sign of zero", pyarrow.table({"a": [(0.0, -0.0)[which]]})
    bits = numpy.array([0x7FF8000000000000 + which], "uint64").view("float64")
    yield "bits of NaN", pyarrow.table({"a": pyarrow.array(bits, from_pandas=False)})
    moments = numpy.array(["2031-01-01T00:00:00.00000000" + "12"[which]], "datetime64[ns]")
    yield "nanosecond", pyarrow.table({"a": moments})


def by_polars(path, which):
    import polars

    value = (0.25, 0.5)[which]
    yield "value", polars.DataFrame({"a": [value]})
    yield "nested", polars.DataFrame({"a": [[[value] * 2000]]})
    yield "column's name", polars.DataFrame({("a", "b")[which]: [1.0]})
    yield "type", polars.DataFrame({"a": polars.Series([1], dtype=(polars.Int32, polars.Int64)[which])})
    moment = datetime.datetime(2031, 1, 1, tzinfo=datetime.UTC).replace(tzinfo=None)
    yield (
        "nanosecond",
        polars.DataFrame(
            {"a": polars.Series([moment]).cast(polars.Datetime("ns")).dt.offset_by(f"{which}ns")}
        ),
    )


def by_h5py(path, which):
    import h5py
    import numpy

    value = (0.25, 0.5)[which]

    def made(act):
        with h5py.File(path, "w") as file:
            file["one"], file["two"] = [1.0], [2.0]
            act(file)

    def several(file):
        kind = h5py.vlen_dtype(numpy.dtype("float64"))
        rows = file.create_dataset("rows", (1,), dtype=kind)
        rows[0] = numpy.array([1.0] * 1500 + [value] + [1.0] * 1500)

    def shaped(file):
        file.attrs["a"] = numpy.zeros(((2, 3), (3, 2))[which])

    yield "value", made(lambda file: file.__setitem__("a", [value]))
    yield "many values", made(lambda file: file.__setitem__("a", numpy.array([1.0] * 2000 + [value])))
    yield "rows of many lengths", made(several)
    yield "compound", made(lambda f: f.__setitem__("a", numpy.array([(1, value)], "i4,f8")))
    yield "attribute", made(lambda file: file.attrs.__setitem__("a", value))
    yield "shape of an attribute", made(shaped)
    yield (
        "reference",
        made(lambda f: f.create_dataset("a", data=f[("one", "two")[which]].ref, dtype=h5py.ref_dtype)),
    )
    yield "soft link", made(lambda f: f.__setitem__("a", h5py.SoftLink(("/one", "/two")[which])))
    yield (
        "external link",
        made(lambda f: f.__setitem__("a", h5py.ExternalLink("b.h5", ("/one", "/two")[which]))),
    )
    yield "hard link", made(lambda f: f.__setitem__("a", f[("one", "two")[which]]))
    yield "empty group", made(lambda f: f.create_group("ab"[which]))
    yield "name with a break", made(lambda f: f.create_group(("a\nb", "a\\nb")[which]))


def by_duckdb(path, which):
    import duckdb

    value = (0.25, 0.5)[which]

    def made(*statements):
        with duckdb.connect(path) as database:
            for statement in statements:
                database.execute(statement)

    yield "value", made("CREATE TABLE a AS SELECT " + str(value))
    yield "nested", made(f"CREATE TABLE a AS SELECT [{{'b': [{value}]}}] AS c")
    yield (
        "nanosecond",
        made(f"CREATE TABLE a AS SELECT '2031-01-01 00:00:00.00000000{which + 1}'::TIMESTAMP_NS AS b"),
    )
    yield "interval", made("CREATE TABLE a AS SELECT INTERVAL " + ("'1 month'", "'30 days'")[which] + " AS b")
    yield "text or null", made("CREATE TABLE a AS SELECT " + ("'None'", "NULL::VARCHAR")[which] + " AS b")
    yield "bytes", made("CREATE TABLE a AS SELECT " + ("'a'", "'b'")[which] + "::BLOB AS b")
    yield "view", made(f"CREATE VIEW a AS SELECT {value} AS b")
    yield "macro", made(f"CREATE MACRO a(x) AS x * {value}")
    yield "type", made("CREATE TYPE a AS ENUM (" + ("'x'", "'y'")[which] + ")")
    yield "comment", made("CREATE TABLE a (b INT)", f"COMMENT ON TABLE a IS '{value}'")
    yield "schema", made("CREATE SCHEMA " + "ab"[which])


def write_table(library, table, path):
    if library == "pyarrow":
        import pyarrow.parquet

        pyarrow.parquet.write_table(table, path)
    elif library == "polars":
        table.write_parquet(path)


MAKERS = {"pyarrow": by_pyarrow, "polars": by_polars, "h5py": by_h5py, "duckdb": by_duckdb}
READER = {"pyarrow": "parquet", "polars": "polars", "h5py": "hdf5", "duckdb": "duckdb"}


def main(library):
    path, sides = "file", []
    for which in (0, 1):
        told = {}
        for name, made in MAKERS[library](path, which):
            write_table(library, made, path)
            try:
                told[name] = list(READERS[READER[library]](path))
            except TypeError:
                told[name] = which  # nothing is told: the bytes are compared
            for each in Path().glob("file*"):
                each.unlink()
        sides.append(told)
    for name, lines in sides[0].items():
        if lines == sides[1][name]:
            print(name)


main(sys.argv[1])
