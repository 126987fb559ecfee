"""Nightly retail ETL: raw CSV extracts -> cleaned Parquet parts (process pool) -> DuckDB marts -> report.

Stages log into etl.log; every stage adds an entry to manifest.json; part files carry a UUID
as Spark and Arrow writers do.
"""
import json
import logging
import os
import sys
import time
import uuid
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

BASE = Path("warehouse")
RAW, STAGE, MART = BASE / "raw", BASE / "stage", BASE / "mart"
STORES = ["ams", "ber", "cph", "dub", "hel", "lis"]
DAYS, SEED = 60, 909
FX = {"EUR": 1.0, "DKK": 0.134}

logger = logging.getLogger("etl")


def configure_logging(level=logging.INFO):
    h = [logging.StreamHandler(sys.stdout), logging.FileHandler(BASE / "etl.log")]
    fmt = logging.Formatter("%(asctime)s.%(msecs)03d %(processName)s[%(process)d] %(levelname)s %(message)s",
                            "%Y/%m/%d %H:%M:%S")
    for x in h:
        x.setFormatter(fmt)
        logger.addHandler(x)
    logger.setLevel(level)


class Manifest:
    def __init__(self, path, job):
        self.path, self.doc = path, {"job": job, "run_id": str(uuid.uuid4()), "started_at": self._now(), "stages": []}

    @staticmethod
    def _now():
        return datetime.now(timezone.utc).isoformat()

    def stage(self, name, rows_in, rows_out, seconds, **extra):
        self.doc["stages"].append({"name": name, "rows_in": int(rows_in), "rows_out": int(rows_out),
                                   "seconds": seconds, "rows_per_second": rows_in / max(seconds, 1e-9),
                                   "finished_at": self._now(), **extra})
        self.path.write_text(json.dumps(self.doc, indent=2))


def extract(manifest):
    """Write the raw files (in production these come from the stores' tills)."""
    t = time.perf_counter()
    total = 0
    start = date(2025, 3, 1)
    for i, store in enumerate(STORES):
        rng = np.random.default_rng([SEED, i])
        n = 40000 + 3000 * i
        df = pd.DataFrame({
            "receipt": [f"{store}-{k:07d}" for k in range(n)],
            "day": [(start + timedelta(days=int(d))).isoformat() for d in rng.integers(0, DAYS, n)],
            "sku": rng.integers(1000, 1060, n),
            "qty": rng.integers(-1, 6, n),
            "unit_price": rng.gamma(3, 4, n).round(2),
            "currency": "DKK" if store == "cph" else "EUR",
        })
        df = pd.concat([df, df.iloc[rng.integers(0, n, 800)]], ignore_index=True)
        df.loc[rng.random(len(df)) < 0.01, "unit_price"] = np.nan
        df.to_csv(RAW / f"{store}.csv", index=False)
        total += len(df)
    manifest.stage("extract", total, total, time.perf_counter() - t, files=len(STORES))
    logger.info("extracted %d rows from %d stores", total, len(STORES))


def clean_store(store):
    """Runs in a worker process: one raw file -> one Parquet part."""
    t = time.perf_counter()
    if not logger.handlers:
        configure_logging()
    logger.info("cleaning %s", store)
    raw = pl.read_csv(RAW / f"{store}.csv", schema_overrides={"qty": pl.Int64})
    out = (raw.unique(subset=["receipt", "sku", "day"], keep="first", maintain_order=True)
           .filter(pl.col("unit_price").is_not_null() & (pl.col("qty") != 0))
           .with_columns(pl.col("day").str.to_date(), pl.lit(store).alias("store"),
                         (pl.col("unit_price") * pl.col("currency").replace_strict(FX, default=1.0)).round(4).alias("price_eur"))
           .with_columns((pl.col("qty") * pl.col("price_eur")).round(4).alias("amount"))
           .sort(["day", "receipt"]))
    seconds = time.perf_counter() - t
    part = STAGE / f"store={store}" / f"part-00000-{uuid.uuid4()}.c000.snappy.parquet"
    part.parent.mkdir(parents=True, exist_ok=True)
    tbl = out.drop("currency").to_arrow()
    meta = {b"etl.written_at": datetime.now().isoformat().encode(), b"etl.worker_pid": str(os.getpid()).encode()}
    tmp = part.with_suffix(".tmp")
    pq.write_table(tbl.replace_schema_metadata(meta), tmp, compression="snappy")
    tmp.rename(part)
    logger.info("cleaned %s: %d -> %d rows in %.1f ms", store, raw.height, out.height, seconds * 1e3)
    return {"store": store, "rows_in": raw.height, "rows_out": out.height, "seconds": seconds, "path": str(part)}


def transform(manifest):
    t = time.perf_counter()
    parts = []
    with ProcessPoolExecutor(max_workers=2) as pool:
        futs = {pool.submit(clean_store, s): s for s in STORES}
        for n, f in enumerate(as_completed(futs), 1):
            r = f.result()
            parts.append(r)
            logger.info("[%d/%d] %s finished", n, len(STORES), r["store"])
    (STAGE / "_SUCCESS").touch()
    manifest.stage("transform", sum(p["rows_in"] for p in parts), sum(p["rows_out"] for p in parts),
                   time.perf_counter() - t, parts=parts)
    return sorted(parts, key=lambda p: p["store"])


def build_marts(parts, manifest):
    t = time.perf_counter()
    con = duckdb.connect(str(BASE / "marts.duckdb"))
    con.execute("SET threads TO 1")
    con.execute("CREATE TABLE sales AS SELECT * FROM read_parquet(?, hive_partitioning=false) ORDER BY store, day, receipt",
                [[p["path"] for p in parts]])
    n = con.execute("SELECT count(*) FROM sales").fetchone()[0]
    queries = {
        "daily_revenue": """SELECT store, day, count(*) AS lines, round(sum(amount)::DOUBLE, 2) AS revenue
                            FROM sales GROUP BY ALL ORDER BY store, day""",
        "top_skus": """SELECT store, sku, sum(qty)::BIGINT AS units, round(sum(amount), 2) AS revenue,
                       row_number() OVER (PARTITION BY store ORDER BY sum(amount) DESC, sku) AS rk
                       FROM sales GROUP BY store, sku QUALIFY rk <= 5 ORDER BY store, rk""",
        "weekday_share": """SELECT dayname(day) AS weekday, round(100 * sum(amount) / (SELECT sum(amount) FROM sales), 3) AS pct
                            FROM sales GROUP BY 1, dayofweek(day) ORDER BY dayofweek(day)""",
    }
    out = {}
    con.execute("CREATE TABLE etl_audit(query VARCHAR, rows BIGINT, ms DOUBLE, logged_at TIMESTAMP)")
    for name, sql in queries.items():
        q = time.perf_counter()
        df = con.execute(sql).df()
        ms = (time.perf_counter() - q) * 1e3
        con.execute("INSERT INTO etl_audit VALUES (?, ?, ?, ?)", [name, len(df), ms, datetime.now()])
        df.to_csv(MART / f"{name}.csv", index=False)
        logger.info("mart %s: %d rows, query took %.2f ms", name, len(df), ms)
        out[name] = df
    con.close()
    manifest.stage("marts", n, sum(map(len, out.values())), time.perf_counter() - t)
    return out


def report(marts, manifest):
    rev = marts["daily_revenue"].groupby("store").revenue.agg(["sum", "mean", "max"]).round(2)
    print("\nRevenue by store (EUR)")
    print(rev.to_string())
    print("\nShare by weekday (%)")
    print(marts["weekday_share"].to_string(index=False))
    lines = ["# Sales report", "", f"_Generated {datetime.now():%d %b %Y, %H:%M:%S} by job {manifest.doc['run_id']}_", "",
             "| store | revenue | daily mean | best day |", "|---|---:|---:|---:|"]
    lines += [f"| {s} | {r['sum']:.2f} | {r['mean']:.2f} | {r['max']:.2f} |" for s, r in rev.iterrows()]
    (MART / "report.md").write_text("\n".join(lines) + "\n")


def main():
    for d in (RAW, STAGE, MART):
        d.mkdir(parents=True, exist_ok=True)
    configure_logging()
    pl.Config.set_tbl_rows(8)
    t0 = time.time()
    m = Manifest(BASE / "manifest.json", "retail-nightly")
    logger.info("job %s start, pyarrow %s duckdb %s", m.doc["run_id"], pa.__version__, duckdb.__version__)
    extract(m)
    parts = transform(m)
    marts = build_marts(parts, m)
    report(marts, m)
    took = timedelta(seconds=time.time() - t0)
    logger.info("job finished in %s", took)


if __name__ == "__main__":
    main()
