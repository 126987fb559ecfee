"""Retail order ETL: raw CSV -> cleaned parquet -> aggregated reports.

Stages: extract (write raw dumps), clean (pandas), transform (polars), load (parquet/CSV).
A manifest with row counts, content hashes and stage timings is written at the end.
"""
import contextlib
import hashlib
import json
import logging
import os
import shutil
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl

SEED = 99
OUT = Path("warehouse")
STAGES = {}

logging.basicConfig(level=logging.INFO,
                    format="%(asctime)s [%(levelname)s] %(message)s")
log = logging.getLogger("etl")


@contextlib.contextmanager
def stage(name):
    log.info("stage %s started", name)
    t0 = time.monotonic()
    yield
    STAGES[name] = time.monotonic() - t0
    log.info("stage %s finished in %.3fs", name, STAGES[name])


def extract(tmp):
    """Stands in for an API dump: three monthly CSV files with dirty rows."""
    rng = np.random.default_rng(SEED)
    paths = []
    for month in (1, 2, 3):
        n = 4000
        start = np.datetime64(f"2023-{month:02d}-01T00:00:00")
        ts = start + rng.integers(0, 28 * 86400, n).astype("timedelta64[s]")
        df = pd.DataFrame({
            "order_id": np.arange(n) + month * 100000,
            "ts": ts.astype(str),
            "customer": [f"C{c:04d}" for c in rng.zipf(1.6, n) % 800],
            "sku": [f"SKU-{s:03d}" for s in rng.integers(0, 120, n)],
            "qty": rng.integers(1, 8, n).astype(float),
            "unit_price": np.round(rng.gamma(3.0, 8.0, n), 2),
            "country": rng.choice([" DE", "fr", "US", "us ", "JP"], n),
        })
        df.loc[rng.random(n) < 0.03, "qty"] = np.nan
        df.loc[rng.random(n) < 0.01, "unit_price"] = -1
        dup = df.sample(60, random_state=month)
        path = Path(tmp) / f"orders_2023{month:02d}.csv"
        pd.concat([df, dup]).to_csv(path, index=False)
        log.info("wrote %s (%d rows)", path, len(df) + len(dup))
        paths.append(path)
    return paths


def clean(paths):
    df = pd.concat([pd.read_csv(p, parse_dates=["ts"]) for p in paths], ignore_index=True)
    n_raw = len(df)
    df = df.drop_duplicates("order_id")
    df["country"] = df["country"].str.strip().str.upper()
    bad = (df["unit_price"] <= 0) | df["qty"].isna()
    df = df.loc[~bad].sort_values(["ts", "order_id"]).reset_index(drop=True)
    df["qty"] = df["qty"].astype(int)
    df["revenue"] = (df["qty"] * df["unit_price"]).round(2)
    print(f"rows: raw={n_raw} dropped_invalid={int(bad.sum())} clean={len(df)}")
    return df


def transform(df):
    lf = pl.from_pandas(df).lazy()
    daily = (lf.group_by_dynamic("ts", every="1d")
               .agg(pl.col("revenue").sum().round(2), pl.len().alias("orders"),
                    pl.col("customer").n_unique().alias("customers"))
               .with_columns(pl.col("revenue").rolling_mean(7).alias("revenue_ma7"))
               .collect())
    country = (lf.group_by("country")
                 .agg(pl.col("revenue").sum().round(2), pl.col("revenue").median().alias("median_order"),
                      pl.len().alias("orders"))
                 .sort("revenue", descending=True).collect())
    rfm = (lf.group_by("customer")
             .agg(pl.col("ts").max().alias("last_order"), pl.len().alias("frequency"),
                  pl.col("revenue").sum().round(2).alias("monetary"))
             .sort("customer")
             .with_columns(pl.col("monetary").rank("ordinal", descending=True).alias("rank"))
             .collect())
    top_skus = (lf.group_by("sku").agg(pl.col("revenue").sum().round(2), pl.col("qty").sum())
                  .sort(["revenue", "sku"], descending=[True, False]).head(10).collect())
    return {"daily": daily, "country": country, "rfm": rfm, "top_skus": top_skus}


def load(df, tables):
    OUT.mkdir(exist_ok=True)
    files = {}
    df.to_parquet(OUT / "orders.parquet", index=False)
    for name, t in tables.items():
        t.write_parquet(OUT / f"{name}.parquet")
        text = t.write_csv()
        files[name] = {"rows": t.height, "sha256": hashlib.sha256(text.encode()).hexdigest()}
    with open(OUT / "country_report.csv", "w") as f:
        f.write(f"# Country report, generated {datetime.now():%Y-%m-%d %H:%M:%S}\n")
        f.write(tables["country"].write_csv())
    with open(OUT / "daily.csv", "w") as f:
        f.write(tables["daily"].write_csv())
    return files


def main():
    started = datetime.now(timezone.utc)
    tmp = tempfile.mkdtemp(prefix="etl_raw_")
    try:
        with stage("extract"):
            paths = extract(tmp)
        with stage("clean"):
            df = clean(paths)
        with stage("transform"):
            tables = transform(df)
        with stage("load"):
            files = load(df, tables)
    finally:
        shutil.rmtree(tmp)
    with pl.Config(tbl_rows=12):
        print(tables["country"])
        print(tables["top_skus"])
    manifest = {
        "started": started.isoformat(),
        "finished": datetime.now(timezone.utc).isoformat(),
        "staging_dir": tmp,
        "stage_seconds": STAGES,
        "rows": len(df),
        "total_revenue": float(df["revenue"].sum().round(2)),
        "tables": files,
    }
    (OUT / "_manifest.json").write_text(json.dumps(manifest, indent=2))
    print(f"{len(df)} orders, total revenue {manifest['total_revenue']:.2f}, "
          f"{len(df) / sum(STAGES.values()):,.0f} rows/s")


if __name__ == "__main__":
    main()
