"""Group-by and join questions on DuckDB, with the timing table of a public benchmark.

Modelled on: duckdblabs/db-benchmark (formerly h2oai/db-benchmark): time.csv with
timestamp, question, out_rows, run, time_sec, mem_gb, chk, chk_time_sec; logs.csv per solution.
"""
import csv
import os
import platform
import time
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import psutil

TASK = "groupby"
SOLUTION = "duckdb"
N, K = 200_000, 100
DATA = f"G1_{N:.0e}_{K:.0e}_0_0".replace("+0", "")
BATCH = int(time.time())
NODE = platform.node()


def memory_usage():
    return round(psutil.Process(os.getpid()).memory_info().rss / 1024 ** 3, 3)


def make_chk(values):
    return ";".join(str(round(float(v), 3)) for v in values).replace(",", "_")


def write_log(**row):
    path = Path("time.csv")
    new = not path.exists()
    with path.open("a", newline="") as f:
        w = csv.DictWriter(f, fieldnames=list(row))
        if new:
            w.writeheader()
        w.writerow(row)


def write_state(action):
    with open("logs.csv", "a") as f:
        f.write(f"{NODE},{BATCH},{SOLUTION},{duckdb.__version__},{TASK},{DATA},{time.time()},{action}\n")


def make_data():
    rng = np.random.default_rng(108)
    return pd.DataFrame({
        "id1": np.char.add("id", np.char.zfill(rng.integers(1, K + 1, N).astype(str), 3)),
        "id2": np.char.add("id", np.char.zfill(rng.integers(1, K + 1, N).astype(str), 3)),
        "id3": np.char.add("id", np.char.zfill(rng.integers(1, N // K + 1, N).astype(str), 10)),
        "id4": rng.integers(1, K + 1, N),
        "id5": rng.integers(1, K + 1, N),
        "id6": rng.integers(1, N // K + 1, N),
        "v1": rng.integers(1, 6, N),
        "v2": rng.integers(1, 16, N),
        "v3": np.round(rng.uniform(0, 100, N), 6),
    })


QUESTIONS = [
    ("sum v1 by id1", "SELECT id1, sum(v1) AS v1 FROM x GROUP BY id1", ["v1"]),
    ("sum v1 by id1:id2", "SELECT id1, id2, sum(v1) AS v1 FROM x GROUP BY id1, id2", ["v1"]),
    ("sum v1 mean v3 by id3", "SELECT id3, sum(v1) AS v1, avg(v3) AS v3 FROM x GROUP BY id3", ["v1", "v3"]),
    ("mean v1:v3 by id4", "SELECT id4, avg(v1) AS v1, avg(v2) AS v2, avg(v3) AS v3 FROM x GROUP BY id4", ["v1", "v2", "v3"]),
    ("sum v1:v3 by id6", "SELECT id6, sum(v1) AS v1, sum(v2) AS v2, sum(v3) AS v3 FROM x GROUP BY id6", ["v1", "v2", "v3"]),
    ("median v3 sd v3 by id4 id5",
     "SELECT id4, id5, median(v3) AS median_v3, stddev(v3) AS sd_v3 FROM x GROUP BY id4, id5", ["median_v3", "sd_v3"]),
    ("max v1 - min v2 by id3", "SELECT id3, max(v1) - min(v2) AS range_v1_v2 FROM x GROUP BY id3", ["range_v1_v2"]),
    ("largest two v3 by id6",
     "SELECT id6, v3 AS largest2_v3 FROM (SELECT id6, v3, row_number() OVER (PARTITION BY id6 ORDER BY v3 DESC) AS o "
     "FROM x) WHERE o <= 2", ["largest2_v3"]),
    ("regression v1 v2 by id2 id4", "SELECT id2, id4, pow(corr(v1, v2), 2) AS r2 FROM x GROUP BY id2, id4", ["r2"]),
]


def main():
    print("# groupby-duckdb.py", flush=True)
    print(f"loading dataset {DATA} (batch {BATCH}, node {NODE})", flush=True)
    write_state("start")
    con = duckdb.connect("bench.duckdb")
    con.execute("SET threads = 1")
    frame = make_data()
    con.register("frame", frame)
    t = time.perf_counter()
    con.execute("CREATE TABLE x AS SELECT * FROM frame")
    in_rows = con.execute("SELECT count(*) FROM x").fetchone()[0]
    print(f"{in_rows} rows loaded in {time.perf_counter() - t:.3f}s", flush=True)

    task0 = time.time()
    Path("answers").mkdir()
    report = []
    print("grouping...", flush=True)
    for q, (name, sql, cols) in enumerate(QUESTIONS, 1):
        times = []
        for run in (1, 2):
            con.execute("DROP TABLE IF EXISTS ans")
            t = time.perf_counter()
            con.execute("CREATE TABLE ans AS " + sql)
            out_rows, = con.execute("SELECT count(*) FROM ans").fetchone()
            took = time.perf_counter() - t
            times.append(took)
            mem = memory_usage()
            t = time.perf_counter()
            sums = con.execute("SELECT " + ", ".join(f"sum({c})" for c in cols) + " FROM ans").fetchone()
            chkt = time.perf_counter() - t
            chk = make_chk(sums)
            write_log(nodename=NODE, batch=BATCH, timestamp=time.time(), task=TASK, data=DATA, in_rows=in_rows,
                      question=name, out_rows=out_rows, solution=SOLUTION, version=duckdb.__version__, fun="group_by",
                      run=run, time_sec=round(took, 3), mem_gb=mem, cache="TRUE", chk=chk,
                      chk_time_sec=round(chkt, 3), on_disk="FALSE")
        keys = [c for c in con.execute("SELECT * FROM ans LIMIT 0").df().columns if c not in cols]
        order = ", ".join(keys + cols)
        con.execute(f"COPY (SELECT * FROM ans ORDER BY {order}) TO 'answers/q{q}.parquet' (FORMAT parquet)")
        print(con.execute(f"SELECT * FROM ans ORDER BY {order} LIMIT 3").df().to_string(index=False))
        print(f"q{q} ({name}): {out_rows} rows, first {times[0]:.3f}s, second {times[1]:.3f}s, chk {chk}", flush=True)
        report.append((name, out_rows, chk, *times))
    print(f"grouping finished, took {time.time() - task0:.0f}s", flush=True)
    write_state("finish")
    with open("report.md", "w") as f:
        f.write(f"# {SOLUTION} {duckdb.__version__}: {TASK} {DATA}\n\nRun {time.strftime('%Y-%m-%d %H:%M:%S')} on {NODE}\n\n")
        f.write("| question | rows | chk | first [s] | second [s] |\n|---|---:|---|---:|---:|\n")
        for name, rows, chk, a, b in report:
            f.write(f"| {name} | {rows} | {chk} | {a:.3f} | {b:.3f} |\n")
        best = min(report, key=lambda r: r[3])
        f.write(f"\nTotal of first runs: {sum(r[3] for r in report):.2f} s; fastest question: {best[3] * 1000:.1f} ms\n")
    con.close()
    os.remove("bench.duckdb")


if __name__ == "__main__":
    main()
