"""Style of h2oai/db-benchmark (_helpers/helpers.py, */groupby-*.py). Differs in each run: nodename, batch id, timestamps,
time_sec, mem_gb, chk_time_sec, the wall clock lines, the name of the log folder."""
import csv
import datetime
import gc
import math
import os
import platform
import time
import timeit

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import psutil

BATCH = str(int(time.time()))
LOG_DIR = os.path.join("log", f"run_{BATCH}_{os.getpid()}")
os.makedirs(LOG_DIR, exist_ok=True)
CSV_FILE = "time.csv"
HEADER = ["nodename", "batch", "timestamp", "task", "data", "in_rows", "question", "out_rows", "out_cols", "solution",
          "version", "fun", "run", "time_sec", "mem_gb", "cache", "chk", "chk_time_sec", "on_disk"]


def memory_usage():
    return psutil.Process(os.getpid()).memory_info().rss / (1024 ** 3)


def make_chk(values):
    return ";".join(str(round(float(x), 3)) for x in values).replace(",", "_")


def write_log(**kw):
    t = round(kw["time_sec"], 3)
    row = [platform.node(), BATCH, time.time(), kw["task"], kw["data"], kw["in_rows"], kw["question"], kw["out_rows"],
           kw["out_cols"], kw["solution"], kw["version"], kw["fun"], kw["run"], "" if math.isnan(t) else t,
           round(kw["mem_gb"], 3), True, kw["chk"], round(kw["chk_time_sec"], 3), False]
    print("# " + ",".join(str(x) for x in row), flush=True)
    new = not os.path.isfile(CSV_FILE)
    with open(CSV_FILE, "a") as f:
        w = csv.writer(f, lineterminator="\n")
        if new:
            w.writerow(HEADER)
        w.writerow(row)


def make_data(n=400_000, k=100, seed=108):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({
        "id1": np.char.add("id", rng.integers(1, k + 1, n).astype(str)),
        "id4": rng.integers(1, k + 1, n),
        "id6": rng.integers(1, n // k + 1, n),
        "v1": rng.integers(1, 6, n),
        "v2": rng.integers(1, 16, n),
        "v3": np.round(rng.random(n) * 100, 6)})


QUESTIONS = [
    ("sum v1 by id1", ["id1"], {"v1": "sum"}),
    ("sum v1 mean v3 by id4", ["id4"], {"v1": "sum", "v3": "mean"}),
    ("mean v1:v3 by id4", ["id4"], {"v1": "mean", "v2": "mean", "v3": "mean"}),
    ("max v1 - min v2 by id6", ["id6"], {"v1": "max", "v2": "min"}),
]


def run_pandas(x, keys, agg):
    return x.groupby(keys, sort=True, observed=True).agg(agg).reset_index()


def run_polars(x, keys, agg):
    ops = [getattr(pl.col(c), f)() for c, f in agg.items()]
    return x.group_by(keys).agg(ops).sort(keys).to_pandas()


def run_duckdb(con, keys, agg):
    fn = {"sum": "sum", "mean": "avg", "max": "max", "min": "min"}
    cols = ", ".join(f"{fn[f]}({c}) AS {c}" for c, f in agg.items())
    return con.execute(f"SELECT {', '.join(keys)}, {cols} FROM x GROUP BY {', '.join(keys)} ORDER BY {', '.join(keys)}").df()


def main():
    print(f"# groupby-all.py, batch {BATCH}, started {datetime.datetime.now():%Y-%m-%d %H:%M:%S} on {platform.node()}")
    t0 = timeit.default_timer()
    x = make_data()
    print("loading dataset G1_4e5_1e2_0_0 finished, took %0.3fs" % (timeit.default_timer() - t0))
    con = duckdb.connect()
    con.execute("SET threads TO 1")
    con.register("xdf", x)
    con.execute("CREATE TABLE x AS SELECT * FROM xdf")
    sols = [("pandas", pd.__version__, run_pandas, x), ("polars", pl.__version__, run_polars, pl.from_pandas(x)),
            ("duckdb", duckdb.__version__, run_duckdb, con)]
    task_init = timeit.default_timer()
    answers = []
    for q, keys, agg in QUESTIONS:
        for name, ver, fun, src in sols:
            for run in (1, 2):
                gc.collect()
                t = timeit.default_timer()
                ans = fun(src, keys, agg)
                t = timeit.default_timer() - t
                m = memory_usage()
                tc = timeit.default_timer()
                chk = [ans[c].sum() for c in agg]
                tc = timeit.default_timer() - tc
                write_log(task="groupby", data="G1_4e5_1e2_0_0", in_rows=len(x), question=q, out_rows=ans.shape[0],
                          out_cols=ans.shape[1], solution=name, version=ver, fun=".groupby", run=run, time_sec=t,
                          mem_gb=m, chk=make_chk(chk), chk_time_sec=tc)
            answers.append((q, name, *ans.shape, make_chk(chk)))
            with open(os.path.join(LOG_DIR, f"{name}.out"), "a") as f:
                f.write(f"[{datetime.datetime.now().isoformat()}] {q}: {t:.6f} {ans.shape}\n")
    pd.DataFrame(answers, columns=["question", "solution", "rows", "cols", "chk"]).to_csv("answers.csv", index=False)
    tt = pd.read_csv(CSV_FILE).pivot_table(index="question", columns="solution", values="time_sec", aggfunc="min")
    print(tt.to_string(float_format="{:.3f}".format))
    print("grouping finished, took %0.fs" % (timeit.default_timer() - task_init))


if __name__ == "__main__":
    main()
