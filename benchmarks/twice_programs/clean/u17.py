"""Analytical query benchmark over web-hit records, two engines.

Modelled on: ClickHouse/ClickBench (duckdb/run.py, duckdb-dataframe, polars/query.py; results/*.json with
system, date, machine, load_time, data_size and [cold, hot, hot] seconds per query): stdout in the
"[0.012,0.003,0.003]," form, result.csv, log.txt; beside them the answers of every query (answers/qNN.csv,
answers.parquet with file metadata about the run), which must agree between the engines.
"""
import datetime
import json
import os
import platform
import tempfile
import timeit
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

TRIES, ROWS = 3, 120_000

QUERIES = [
    "select count(*) as c from hits",
    "select count(*) as c from hits where AdvEngineID <> 0",
    "select sum(AdvEngineID) as s, count(*) as c, min(ResolutionWidth) as lo, max(ResolutionWidth) as hi from hits",
    "select count(distinct UserID) as u from hits",
    "select AdvEngineID, count(*) as c from hits where AdvEngineID <> 0 group by AdvEngineID order by c desc, AdvEngineID",
    "select RegionID, count(distinct UserID) as u from hits group by RegionID order by u desc, RegionID limit 10",
    "select SearchPhrase, count(*) as c from hits where SearchPhrase <> '' group by SearchPhrase "
    "order by c desc, SearchPhrase limit 10",
    "select UserID, count(*) as c from hits group by UserID order by c desc, UserID limit 10",
    "select RegionID, sum(ResolutionWidth) as w, sum(IsRefresh) as r from hits group by RegionID order by RegionID limit 12",
    "select EventDay, count(*) as c, sum(case when IsRefresh = 1 then 1 else 0 end) as r from hits "
    "group by EventDay order by EventDay",
]


def polars_queries():
    c, n = pl.col, pl.len().alias("c")
    return [
        lambda h: h.select(n),
        lambda h: h.filter(c("AdvEngineID") != 0).select(n),
        lambda h: h.select(c("AdvEngineID").sum().alias("s"), n, c("ResolutionWidth").min().alias("lo"),
                           c("ResolutionWidth").max().alias("hi")),
        lambda h: h.select(c("UserID").n_unique().alias("u")),
        lambda h: h.filter(c("AdvEngineID") != 0).group_by("AdvEngineID").agg(n)
                   .sort(["c", "AdvEngineID"], descending=[True, False]),
        lambda h: h.group_by("RegionID").agg(c("UserID").n_unique().alias("u"))
                   .sort(["u", "RegionID"], descending=[True, False]).head(10),
        lambda h: h.filter(c("SearchPhrase") != "").group_by("SearchPhrase").agg(n)
                   .sort(["c", "SearchPhrase"], descending=[True, False]).head(10),
        lambda h: h.group_by("UserID").agg(n).sort(["c", "UserID"], descending=[True, False]).head(10),
        lambda h: h.group_by("RegionID").agg(c("ResolutionWidth").sum().alias("w"), c("IsRefresh").sum().alias("r"))
                   .sort("RegionID").head(12),
        lambda h: h.group_by("EventDay").agg(n, (c("IsRefresh") == 1).sum().alias("r")).sort("EventDay"),
    ]


def generate(path):
    rng = np.random.default_rng(2013)
    phrases = np.array(["", "", "", "", "weather", "cheap flights", "car parts", "news today", "film online", "recipes"])
    df = pd.DataFrame({
        "UserID": (rng.zipf(1.6, ROWS) % 9000).astype("int64"), "RegionID": rng.integers(1, 60, ROWS),
        "AdvEngineID": np.where(rng.random(ROWS) < 0.03, rng.integers(1, 20, ROWS), 0),
        "ResolutionWidth": rng.choice([1024, 1280, 1366, 1600, 1920], ROWS), "IsRefresh": rng.integers(0, 2, ROWS),
        "EventDay": rng.integers(1, 15, ROWS), "SearchPhrase": phrases[rng.integers(0, len(phrases), ROWS)]})
    df.to_parquet(path)
    return path.stat().st_size


class DuckDB:
    name = "DuckDB"

    def load(self, parquet):
        self.con = duckdb.connect()
        self.con.execute("set threads = 2")
        self.con.execute(f"create table hits as select * from read_parquet('{parquet}')")

    def query(self, i):
        return self.con.execute(QUERIES[i]).fetchall()


class Polars:
    name = "Polars"

    def load(self, parquet):
        self.hits, self.queries = pl.read_parquet(parquet), polars_queries()

    def query(self, i):
        return self.queries[i](self.hits.lazy()).collect().rows()


def plain(rows):
    return [[int(v) if not isinstance(v, str) else v for v in r] for r in rows]


def run(engine, parquet, size, log):
    start = timeit.default_timer()
    engine.load(parquet)
    load = timeit.default_timer() - start
    print(f"{engine.name}: load time {load:.3f} s")
    times, answers = [], []
    for i in range(len(QUERIES)):
        row = []
        for _ in range(TRIES):
            t = timeit.default_timer()
            got = engine.query(i)
            row.append(round(timeit.default_timer() - t, 4))
        times.append(row)
        answers.append(plain(got))
        print(json.dumps(row, separators=(",", ":")) + ",")
        log.write(f"{datetime.datetime.now():%Y.%m.%d %H:%M:%S.%f} [ {os.getpid()} ] {engine.name} q{i}: "
                  f"{len(got)} rows in set. Elapsed: {row[-1]:.4f} sec. Processed {ROWS} rows "
                  f"({ROWS / max(row[-1], 1e-4) / 1e6:.2f} million rows/s.)\n")
    json.dump({"system": engine.name, "date": f"{datetime.date.today()}", "machine": platform.node(),
               "cluster_size": 1, "tags": ["embedded", "column-oriented"], "load_time": round(load, 4),
               "data_size": size, "memory": psutil.Process().memory_info().rss, "result": times},
              open(f"results/{engine.name.lower()}.json", "w"), indent=2)
    with open("result.csv", "a") as f:
        f.writelines(f"{engine.name},{i},{t}," + ",".join(map(str, [times[i][t]])) + "\n"
                     for i in range(len(times)) for t in range(TRIES))
    return answers


def main():
    for d in ("results", "answers"):
        Path(d).mkdir()
    with tempfile.TemporaryDirectory(prefix="clickbench_") as tmp, open("log.txt", "w") as log:
        parquet = Path(tmp) / "hits.parquet"
        size = generate(parquet)
        log.write(f"data in {parquet}\n")
        got = [run(e, parquet, size, log) for e in (DuckDB(), Polars())]
    assert got[0] == got[1], "the engines disagree"
    flat = []
    for i, rows in enumerate(got[0]):
        pd.DataFrame(rows).to_csv(f"answers/q{i:02d}.csv", index=False, header=False)
        flat += [(i, j, json.dumps(r)) for j, r in enumerate(rows)]
    table = pa.Table.from_pandas(pd.DataFrame(flat, columns=["query", "row", "answer"]))
    meta = {**(table.schema.metadata or {}), b"created_at": datetime.datetime.now().isoformat().encode(),
            b"host": platform.node().encode(), b"pid": str(os.getpid()).encode()}
    pq.write_table(table.replace_schema_metadata(meta), "answers.parquet")
    for i, rows in enumerate(got[0]):
        print(f"q{i:02d}: {len(rows)} rows, first {rows[0]}")


if __name__ == "__main__":
    main()
