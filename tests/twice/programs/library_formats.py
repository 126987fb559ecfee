"""Writes a time and a number in formats of libraries: ``library_formats.py LIBRARY NUMBER``.

The number is one or ``drawn``.
"""

import random
import sys
import time

began = time.time()
kind = sys.argv[1]
number = random.SystemRandom().random() if sys.argv[2] == "drawn" else float(sys.argv[2])
if kind == "polars":
    import polars

    polars.DataFrame({"loss": [number, 0.5], "took": [time.time() - began, 0.0]}).write_parquet("run.parquet")
elif kind == "pyarrow":
    import pyarrow
    from pyarrow import feather, parquet

    table = pyarrow.table({"loss": [number, 0.5], "took": [time.time() - began, 0.0]})
    parquet.write_table(table, "run.parquet")
    feather.write_feather(table, "run.feather")
elif kind == "h5py":
    import h5py

    with h5py.File("run.h5", "w") as file:
        file["loss"] = [number, 0.5]
        file.attrs["log"] = f"it took {time.time() - began:.6f} s"
        file.attrs["began"] = began
else:
    import duckdb

    with duckdb.connect("run.duckdb") as database:
        database.execute("CREATE TABLE runs (loss DOUBLE, took DOUBLE, made TIMESTAMP)")
        database.execute("INSERT INTO runs VALUES (?, ?, now()::TIMESTAMP)", [number, time.time() - began])
