"""Group-by and join questions on pandas, polars and DuckDB with a time.csv log and check sums, in the style of h2oai/duckdblabs db-benchmark."""
import argparse
import csv
import gc
import os
import socket
import sys
import time
from datetime import datetime
from pathlib import Path

os.environ.setdefault("POLARS_MAX_THREADS", "1")

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

BATCH = int(time.time())


def memory_usage():
    return psutil.Process().memory_info().rss / 2 ** 30


def make_chk(values):
    return ";".join(str(v).replace(",", "_") if isinstance(v, (int, np.integer)) else f"{v:.3f}" for v in values)


class TimeLog:
    FIELDS = ["nodename", "batch", "timestamp", "task", "data", "in_rows", "question", "out_rows", "out_cols", "solution",
              "version", "fun", "run", "time_sec", "mem_gb", "cache", "chk", "chk_time_sec"]

    def __init__(self, path):
        new = not os.path.exists(path)
        self.f = open(path, "a", newline="")
        self.w = csv.DictWriter(self.f, self.FIELDS)
        if new:
            self.w.writeheader()

    def write(self, **row):
        row.update(nodename=socket.gethostname(), batch=BATCH, timestamp=round(time.time(), 4), cache="TRUE")
        self.w.writerow(row)
        self.f.flush()


def generate(n, k, path):
    rng = np.random.default_rng(108)
    df = pd.DataFrame({
        "id1": np.char.add("id", np.char.zfill(rng.integers(1, k + 1, n).astype(str), 3)),
        "id2": np.char.add("id", np.char.zfill(rng.integers(1, k + 1, n).astype(str), 3)),
        "id4": rng.integers(1, k + 1, n).astype(np.int32),
        "id6": rng.integers(1, n // k + 1, n).astype(np.int32),
        "v1": rng.integers(1, 6, n).astype(np.int32),
        "v2": rng.integers(1, 16, n).astype(np.int32),
        "v3": rng.integers(0, 6400, n) / 64.0,
    })
    table = pa.Table.from_pandas(df, preserve_index=False)
    table = table.replace_schema_metadata({"created": datetime.now().isoformat(), "generator": "groupby-datagen.py"})
    pq.write_table(table, path)
    small = pd.DataFrame({"id4": np.arange(1, k + 1, dtype=np.int32), "w": rng.integers(1, 1000, k).astype(np.int64)})
    small.to_parquet(Path(path).with_name("small.parquet"))
    return n


class PandasSolution:
    name, version = "pandas", pd.__version__

    def load(self, p, s):
        self.x, self.s = pd.read_parquet(p), pd.read_parquet(s)

    def q1(self):
        return self.x.groupby("id1", as_index=False, sort=True).agg(v1=("v1", "sum"))

    def q2(self):
        return self.x.groupby(["id1", "id2"], as_index=False, sort=True).agg(v1=("v1", "sum"))

    def q3(self):
        return self.x.groupby("id6", as_index=False, sort=True).agg(v1=("v1", "sum"), v3=("v3", "mean"))

    def q4(self):
        r = self.x.groupby(["id2", "id4"], as_index=False).agg(mx=("v1", "max"), mn=("v2", "min"))
        return r.assign(range_v1_v2=r.mx - r.mn)[["id2", "id4", "range_v1_v2"]]

    def q5(self):
        j = self.x.merge(self.s, on="id4")
        return j.assign(wv=j.w * j.v1).groupby("id1", as_index=False).agg(wv=("wv", "sum"))

    def frame(self, r):
        return r


class PolarsSolution(PandasSolution):
    name, version = "polars", pl.__version__

    def load(self, p, s):
        self.x, self.s = pl.read_parquet(p), pl.read_parquet(s)

    def q1(self):
        return self.x.group_by("id1").agg(pl.col("v1").sum()).sort("id1")

    def q2(self):
        return self.x.group_by("id1", "id2").agg(pl.col("v1").sum()).sort("id1", "id2")

    def q3(self):
        return self.x.group_by("id6").agg(pl.col("v1").sum(), pl.col("v3").mean()).sort("id6")

    def q4(self):
        return (self.x.group_by("id2", "id4").agg((pl.col("v1").max() - pl.col("v2").min()).alias("range_v1_v2"))
                .sort("id2", "id4"))

    def q5(self):
        return (self.x.join(self.s, on="id4").with_columns(wv=pl.col("w") * pl.col("v1"))
                .group_by("id1").agg(pl.col("wv").sum()).sort("id1"))

    def frame(self, r):
        return pd.DataFrame({c: r[c].to_list() for c in r.columns})


class DuckSolution(PandasSolution):
    name, version = "duckdb", duckdb.__version__

    def load(self, p, s):
        self.con = duckdb.connect()
        self.con.execute("set threads to 1")
        self.con.execute(f"create table x as select * from '{p}'")
        self.con.execute(f"create table s as select * from '{s}'")

    def _q(self, sql):
        return self.con.execute(sql).fetch_df()

    def q1(self):
        return self._q("select id1, sum(v1)::bigint v1 from x group by id1 order by id1")

    def q2(self):
        return self._q("select id1, id2, sum(v1)::bigint v1 from x group by id1, id2 order by id1, id2")

    def q3(self):
        return self._q("select id6, sum(v1)::bigint v1, avg(v3) v3 from x group by id6 order by id6")

    def q4(self):
        return self._q("select id2, id4, max(v1) - min(v2) range_v1_v2 from x group by id2, id4 order by id2, id4")

    def q5(self):
        return self._q("select id1, sum(w * v1)::bigint wv from x join s using (id4) group by id1 order by id1")


QUESTIONS = {"q1": "sum v1 by id1", "q2": "sum v1 by id1:id2", "q3": "sum v1 mean v3 by id6",
             "q4": "max v1 - min v2 by id2:id4", "q5": "weighted sum after join on id4"}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--rows", type=int, default=900_000)
    ap.add_argument("--k", type=int, default=60)
    ap.add_argument("--out", type=Path, default=Path("out"))
    args = ap.parse_args()
    Path("data").mkdir(exist_ok=True)
    args.out.mkdir(exist_ok=True)
    data = f"G1_{args.rows:.0e}_{args.k}_0_0".replace("+0", "")
    path, small = f"data/{data}.parquet", "data/small.parquet"
    in_rows = generate(args.rows, args.k, path)
    log = TimeLog("time.csv")
    answers, task_init = {}, time.perf_counter()
    for sol in (PandasSolution(), PolarsSolution(), DuckSolution()):
        print(f"# groupby-{sol.name}.py\nloading dataset {data}", flush=True)
        sol.load(path, small)
        for q, question in QUESTIONS.items():
            for run in (1, 2):
                gc.collect()
                t = time.perf_counter()
                ans = getattr(sol, q)()
                t = time.perf_counter() - t
                m = memory_usage()
                c = time.perf_counter()
                frame = sol.frame(ans)
                value_cols = [x for x in frame.columns if not x.startswith("id")]
                chk = [frame[x].sum() for x in value_cols]
                c = time.perf_counter() - c
                log.write(task="groupby", data=data, in_rows=in_rows, question=question, out_rows=len(frame),
                          out_cols=frame.shape[1], solution=sol.name, version=sol.version, fun=f".{q}", run=run,
                          time_sec=f"{t:.3f}", mem_gb=f"{m:.3f}", chk=make_chk(chk), chk_time_sec=f"{c:.3f}")
                if run == 2:
                    print(f"{question:<32} {frame.shape} chk={make_chk(chk)}  [{t:.3f}s]", flush=True)
            answers.setdefault(q, {})[sol.name] = make_chk(chk)
            if sol.name == "polars":
                ans.write_csv(args.out / f"{q}.csv")
        print(f"grouping finished, took {time.perf_counter() - task_init:.0f}s", flush=True)
        task_init = time.perf_counter()
    bad = [q for q, a in answers.items() if len(set(a.values())) != 1]
    print("solutions agree on all questions" if not bad else f"MISMATCH: {bad}")
    times = pd.read_csv("time.csv")
    best = times.groupby(["question", "solution"], sort=True).time_sec.min().unstack()
    best.to_string(open(args.out / "best_times.txt", "w"))
    print("best time in seconds\n" + best.to_string())
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
