"""Style of dubeyangulo/github-incremental-etl-pipeline (sql/06_etl_run_log.sql) and sohailshk/shipment-etl (LOG.md).
Differs in each run: run_id, start_ts/end_ts, duration columns of the SQLite log, clock in LOG.md, statsmodels' Date/Time."""
import functools
import hashlib
import os
import sqlite3
import time
import uuid
from datetime import datetime, timezone

import numpy as np
import pandas as pd
import statsmodels.formula.api as smf

RUN_ID = f"manual__{datetime.now(timezone.utc).isoformat()}"
BATCH_ID = uuid.uuid4()
DDL = """
CREATE TABLE IF NOT EXISTS etl_run_log (
  pipeline_name TEXT NOT NULL, dag_id TEXT NOT NULL, run_id TEXT NOT NULL, start_ts TEXT NOT NULL, end_ts TEXT,
  status TEXT NOT NULL DEFAULT 'RUNNING', error_message TEXT, duration_s REAL, rows_per_s REAL,
  raw_shipments INTEGER, dim_warehouse_rows INTEGER, fact_shipments_rows INTEGER, PRIMARY KEY (pipeline_name, dag_id, run_id));
CREATE TABLE IF NOT EXISTS etl_step_log (
  id INTEGER PRIMARY KEY AUTOINCREMENT, batch_id TEXT, step TEXT, status TEXT, rows INTEGER, duration_ms INTEGER,
  load_date TEXT DEFAULT (datetime('now')));
CREATE TABLE fact_shipments (shipment_id TEXT PRIMARY KEY, warehouse TEXT, day TEXT, weight REAL, km REAL, cost REAL, hash TEXT,
  loaded_at TEXT);
"""


def log(msg):
    line = f"[{datetime.now():%Y-%m-%d %H:%M:%S}] {msg}"
    print(line)
    with open("LOG.md", "a") as f:
        f.write(line + "\n")


def step(name):
    def deco(fn):
        @functools.wraps(fn)
        def inner(con, *a, **k):
            log(f"Starting {name}({', '.join(type(x).__name__ for x in a)})")
            t0 = time.monotonic_ns()
            out = fn(con, *a, **k)
            ms = (time.monotonic_ns() - t0) // 1_000_000
            n = len(out) if hasattr(out, "__len__") else int(out)
            con.execute("INSERT INTO etl_step_log (batch_id, step, status, rows, duration_ms) VALUES (?,?,?,?,?)",
                        (str(BATCH_ID), name, "SUCCESS", n, ms))
            con.commit()
            log(f"{name} succeeded with {n} records in {ms} ms.")
            return out
        return inner
    return deco


@step("extract")
def extract(con, path):
    rng = np.random.default_rng(2025)
    n = 60_000
    df = pd.DataFrame({"shipment_id": [f"S{i:06d}" for i in range(n)], "warehouse": rng.choice(["AMS", "BLR", "CDG", "DXB"], n),
                       "day": (np.datetime64("2025-01-01") + rng.integers(0, 90, n)).astype(str),
                       "weight": rng.gamma(2.0, 5.0, n).round(3), "km": rng.integers(20, 2000, n).astype(float)})
    df["cost"] = (3 + 0.8 * df.weight + 0.05 * df.km + rng.normal(0, 4, n)).round(2)
    df.loc[rng.choice(n, 700, replace=False), "weight"] = np.nan
    df.to_csv(path, index=False)
    return pd.read_csv(path)


@step("transform")
def transform(con, df):
    df = df.dropna(subset=["weight"]).copy()
    df["cost"] = df.cost.clip(lower=0)
    df["hash"] = [hashlib.sha1(f"{a}|{b:.2f}".encode()).hexdigest()[:12] for a, b in zip(df.shipment_id, df.cost)]
    return df


@step("load")
def load(con, df):
    df.assign(loaded_at=datetime.now().isoformat(sep=" ")).to_sql("fact_shipments", con, if_exists="append", index=False)
    return con.execute("SELECT count(*) FROM fact_shipments").fetchone()[0]


@step("aggregate")
def aggregate(con):
    return pd.read_sql("""SELECT warehouse, substr(day, 1, 7) AS month, count(*) AS n, round(sum(cost), 2) AS cost, round(avg(km), 3) AS km
                          FROM fact_shipments GROUP BY 1, 2 ORDER BY 1, 2""", con)


def main():
    start = time.time()
    con = sqlite3.connect("warehouse.db")
    con.executescript(DDL)
    con.execute("INSERT INTO etl_run_log (pipeline_name, dag_id, run_id, start_ts) VALUES ('shipments', 'daily', ?, ?)",
                (RUN_ID, datetime.now(timezone.utc).isoformat()))
    log(f"ETL pipeline started, run_id={RUN_ID}, batch {BATCH_ID}, pid {os.getpid()}")
    raw = extract(con, "shipments.csv")
    clean = transform(con, raw)
    n = load(con, clean)
    monthly = aggregate(con)
    monthly.to_csv("summary.csv", index=False)
    log(f"Summary CSV written to {os.path.abspath('summary.csv')}")
    fit = smf.ols("cost ~ weight + km + C(warehouse)", data=clean).fit()
    with open("cost_model.txt", "w") as f:
        f.write(fit.summary().as_text())
    dur = time.time() - start
    con.execute("""UPDATE etl_run_log SET end_ts=?, status='SUCCESS', duration_s=?, rows_per_s=?, raw_shipments=?,
                   dim_warehouse_rows=?, fact_shipments_rows=? WHERE run_id=?""",
                (datetime.now(timezone.utc).isoformat(), dur, n / dur, len(raw), clean.warehouse.nunique(), n, RUN_ID))
    con.commit()
    print(monthly.to_string(index=False))
    print(fit.summary())
    print(pd.read_sql("SELECT step, rows, duration_ms, load_date FROM etl_step_log", con).to_string(index=False))
    log("ETL pipeline completed successfully in {:.1f} seconds ({:,.0f} rows/s)".format(dur, n / dur))
    con.close()


if __name__ == "__main__":
    main()
