"""Meter readings: store them as a Parquet dataset, reload, make features, report.

The readings come in time order from a generator, are written batch by batch to
a dataset, read back in one table, and turned into per meter consumption with
lags and a seasonal summary.

Modelled on: https://github.com/apache/arrow/issues/26818
"""
import shutil
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds

METERS = 40
DISTRICTS = ["north", "east", "south", "west", "centre", "harbour"]
HOURS = 24 * 96
PER_BATCH = 480
TARGET = "readings"
SCHEMA = pa.schema([
    ("meter", pa.int16()),
    ("register", pa.float64()),
    ("quality", pa.string()),
    ("note", pa.string()),
])


def reading_batches(seed):
    """Register values of all meters hour by hour, as record batches."""
    rng = np.random.default_rng(seed)
    base = rng.uniform(0.2, 2.0, METERS)
    register = np.zeros(METERS)
    meter, value = [], []
    for hour in range(HOURS):
        daily = 1 + 0.6 * np.sin(2 * np.pi * (hour % 24) / 24)
        yearly = 1 + 0.3 * np.cos(2 * np.pi * hour / 8760)
        register = register + base * daily * yearly * rng.gamma(4.0, 0.25, METERS)
        meter.append(np.arange(METERS, dtype=np.int16))
        value.append(register)
        if len(meter) * METERS >= PER_BATCH:
            yield make_batch(np.concatenate(meter), np.concatenate(value), rng)
            meter, value = [], []
    if meter:
        yield make_batch(np.concatenate(meter), np.concatenate(value), rng)


def make_batch(meter, value, rng):
    quality = np.where(rng.random(len(meter)) < 0.02, "estimated", "actual")
    tags = rng.integers(0, 10 ** 9, len(meter))
    note = [f"head-end {t % 7} packet {t:09d}" for t in tags]
    return pa.record_batch([pa.array(meter), pa.array(np.round(value, 4)),
                            pa.array(quality.tolist()), pa.array(note)], schema=SCHEMA)


def store(batches, target):
    shutil.rmtree(target, ignore_errors=True)
    options = ds.ParquetFileFormat().make_write_options(compression="zstd", compression_level=3)
    ds.write_dataset(batches, target, format="parquet", file_options=options, schema=SCHEMA)  # cause


def load(target):
    files = sorted(ds.dataset(target).files)
    tables = [ds.dataset(path, format="parquet").to_table(use_threads=False) for path in files]
    return pa.concat_tables(tables).to_pandas()


def add_features(frame):
    grouped = frame.groupby("meter", sort=True)["register"]
    frame["used"] = grouped.diff().fillna(0.0)
    frame["hour"] = frame.groupby("meter").cumcount()
    used = frame.groupby("meter")["used"]
    frame["lag1"] = used.shift(1)
    frame["lag24"] = used.shift(24)
    frame["mean24"] = used.transform(lambda s: s.rolling(24, min_periods=1).mean())
    return frame


def fit_forecast(frame):
    """Least squares of the use on its lags; the last ten days are held out."""
    data = frame.dropna(subset=["lag1", "lag24"])
    train = data[data["hour"] < HOURS - 240]
    test = data[data["hour"] >= HOURS - 240]

    def design(part):
        return np.column_stack([np.ones(len(part)), part["lag1"], part["lag24"], part["mean24"]])

    coef, *_ = np.linalg.lstsq(design(train), train["used"].to_numpy(), rcond=None)
    error = test["used"].to_numpy() - design(test) @ coef
    return coef, float(np.sqrt(np.mean(error ** 2)))


def process(district, seed):
    target = f"{TARGET}/{district}"
    batches = list(reading_batches(seed))
    store(batches, target)
    frame = add_features(load(target))
    negative = int((frame["used"] < 0).sum())
    totals = frame[frame["used"] > 0].groupby("meter")["used"].sum()
    coef, rmse = fit_forecast(frame)
    print(f"{district:8s} {len(batches)} batches, {len(frame)} readings, negative use in {negative} rows")
    print("   largest totals: " + ", ".join(f"{m}: {v:.3f}" for m, v in totals.nlargest(4).items()))
    print("   coefficients: " + " ".join(f"{c:.6f}" for c in coef) + f"  error {rmse:.6f}")
    season = frame.assign(period=frame["hour"] // 360).groupby("period")["used"].agg(["mean", "max"])
    return season.add_prefix(district + "_"), rmse


def main():
    began = time.time()
    pa.set_cpu_count(4)
    seasons, errors = [], []
    for k, district in enumerate(DISTRICTS):
        season, rmse = process(district, seed=21 + k)
        seasons.append(season)
        errors.append(rmse)
    table = pd.concat(seasons, axis=1)
    table.to_csv("season.csv", float_format="%.6f")
    print(table.filter(like="_max").round(4).to_string())
    print(f"mean forecast error: {np.mean(errors):.6f}")
    print(f"finished in {time.time() - began:.1f} s")


if __name__ == "__main__":
    main()
