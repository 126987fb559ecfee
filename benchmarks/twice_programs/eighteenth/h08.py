"""Feature table for the store ranking model, with a permutation baseline.

Sales of the stores are turned into features per store and week; to judge the features, the target is
also permuted within each region and the correlation of every feature with the permuted target is used
as its noise level.

Modelled on: https://github.com/pola-rs/polars/pull/27343
"""
import argparse
import json
import time
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import polars as pl

REGIONS = ["north", "south", "east", "west", "centre"]


def make_sales(n_stores, n_days, seed):
    rng = np.random.default_rng(seed)
    region = rng.integers(0, len(REGIONS), n_stores)
    size = rng.lognormal(0, 0.4, n_stores)
    weekday = 1 + 0.3 * np.sin(np.arange(n_days) / 7 * 2 * np.pi)
    trend = rng.normal(0, 0.002, n_stores)
    lam = 40 * size[:, None] * weekday[None, :] * np.exp(trend[:, None] * np.arange(n_days)[None, :])
    units = rng.poisson(lam)
    promo = rng.random((n_stores, n_days)) < 0.08
    units = units + promo * rng.poisson(12, units.shape)
    days = [date(2023, 1, 2) + timedelta(days=d) for d in range(n_days)]
    return pl.DataFrame({
        "store": np.repeat(np.arange(n_stores), n_days),
        "region": np.repeat(np.array(REGIONS)[region], n_days),
        "day": days * n_stores,
        "units": units.ravel(),
        "promo": promo.ravel(),
        "price": np.round(rng.normal(9.5, 0.6, units.size), 2),
    })


def weekly_features(sales):
    return (
        sales.lazy()
        .with_columns(week=pl.col("day").dt.truncate("1w"))
        .group_by("store", "region", "week")
        .agg(
            units=pl.col("units").sum(),
            peak=pl.col("units").max(),
            promo_days=pl.col("promo").sum(),
            price=pl.col("price").mean(),
            spread=pl.col("units").std(),
        )
        .sort("store", "week")
        .with_columns(
            lag1=pl.col("units").shift(1).over("store"),
            lag4=pl.col("units").shift(4).over("store"),
            mean4=pl.col("units").rolling_mean(4).over("store"),
            target=pl.col("units").shift(-1).over("store"),
        )
        .drop_nulls()
        .collect()
    )


FEATURES = ["units", "peak", "promo_days", "price", "spread", "lag1", "lag4", "mean4"]


def permuted_target(table):
    """Target shuffled among the stores of a region."""
    return table.with_columns(
        permuted=pl.col("target").shuffle().over("region")  # cause
    )


def correlations(table, target):
    row = table.select(pl.corr(f, target).alias(f) for f in FEATURES).row(0, named=True)
    return {f: round(v, 6) for f, v in row.items()}


def noise_level(table, repeats):
    rows = [correlations(permuted_target(table), "permuted") for _ in range(repeats)]
    frame = pl.DataFrame(rows)
    return {f: round(float(frame[f].abs().max()), 6) for f in FEATURES}


def demand_classes(table):
    cut = table["target"].quantile(0.75)
    by_region = (
        table.with_columns(high=pl.col("target") >= cut)
        .group_by("region")
        .agg(n=pl.len(), high=pl.col("high").mean().round(4))
        .sort("region")
    )
    return by_region


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--stores", type=int, default=220)
    ap.add_argument("--days", type=int, default=364)
    ap.add_argument("--repeats", type=int, default=20)
    ap.add_argument("--seed", type=int, default=5)
    ap.add_argument("--out", default="features")
    args = ap.parse_args()

    pl.set_random_seed(args.seed)
    out = Path(args.out)
    out.mkdir(exist_ok=True)
    t0 = time.time()
    sales = make_sales(args.stores, args.days, args.seed)
    table = weekly_features(sales)
    table.write_csv(out / "weekly.csv", float_precision=6)
    demand_classes(table).write_csv(out / "regions.csv")

    real = correlations(table, "target")
    noise = noise_level(table, args.repeats)
    selected = [f for f in FEATURES if abs(real[f]) > 2 * noise[f]]
    (out / "selection.json").write_text(
        json.dumps({"correlation": real, "noise": noise, "selected": selected}, indent=2))

    print(f"{table.height} rows in {time.time() - t0:.2f}s")
    for f in FEATURES:
        print(f"{f:<12} corr {real[f]:+.4f}  noise {noise[f]:.4f}  {'*' if f in selected else ''}")


if __name__ == "__main__":
    main()
