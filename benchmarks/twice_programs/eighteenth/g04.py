"""Bootstrap confidence intervals of a regression, the replicates run through dask.

Reads the measurements, fits the model once, then refits it on resampled data
in worker processes and reports percentile intervals per coefficient.

Modelled on: https://github.com/dask/distributed/issues/2558
"""
import json
import logging
import pathlib

import dask
import numpy as np
import pandas as pd

SEED = 1
REPLICATES = 120
COLUMNS = ["dose", "age", "weight", "baseline"]
log = logging.getLogger("bootstrap")


def make_measurements(path, n=400):
    """A synthetic trial, written as the CSV that the analysis reads."""
    rng = np.random.default_rng(2019)
    frame = pd.DataFrame(
        {
            "dose": rng.choice([0.0, 2.5, 5.0, 10.0], size=n),
            "age": rng.normal(52, 11, size=n).round(1),
            "weight": rng.normal(78, 14, size=n).round(1),
            "baseline": rng.normal(140, 12, size=n).round(2),
        }
    )
    noise = rng.standard_t(4, size=n) * 6
    frame["response"] = (
        12 + 1.3 * frame.dose - 0.08 * frame.age + 0.05 * frame.weight + 0.6 * frame.baseline + noise
    ).round(3)
    frame.to_csv(path, index=False)


def design(frame):
    x = frame[COLUMNS].to_numpy()
    mean, scale = x.mean(axis=0), x.std(axis=0)
    return np.column_stack([np.ones(len(x)), (x - mean) / scale])


def fit(x, y):
    """Huber regression by reweighting."""
    beta = np.linalg.lstsq(x, y, rcond=None)[0]
    for _ in range(25):
        residual = y - x @ beta
        scale = 1.4826 * np.median(np.abs(residual - np.median(residual)))
        u = np.abs(residual) / (1.345 * scale)
        w = np.sqrt(np.where(u <= 1, 1.0, 1.0 / np.maximum(u, 1e-12)))
        new = np.linalg.lstsq(x * w[:, None], y * w, rcond=None)[0]
        if np.max(np.abs(new - beta)) < 1e-10:
            break
        beta = new
    return beta


def replicate_batch(x, y, numbers):
    """Refit on resampled rows, once per number."""
    rows = []
    for number in numbers:
        index = np.random.choice(len(y), size=len(y), replace=True)  # cause
        rows.append((number, *fit(x[index], y[index])))
    return rows


def batches(total, size):
    return [list(range(a, min(a + size, total))) for a in range(0, total, size)]


def run_bootstrap(x, y):
    tasks = [
        dask.delayed(replicate_batch)(x, y, numbers, dask_key_name=f"batch-{numbers[0]:04d}")
        for numbers in batches(REPLICATES, 10)
    ]
    parts = dask.compute(*tasks, scheduler="processes", num_workers=2)
    names = ["replicate", "intercept", *COLUMNS]
    return pd.DataFrame([row for part in parts for row in part], columns=names)


def intervals(point, replicates):
    out = {}
    for name, value in zip(["intercept", *COLUMNS], point):
        low, high = np.percentile(replicates[name], [2.5, 97.5])
        out[name] = {
            "estimate": round(float(value), 5),
            "low": round(float(low), 5),
            "high": round(float(high), 5),
            "se": round(float(replicates[name].std(ddof=1)), 5),
        }
    return out


def main():
    logging.basicConfig(format="[%(asctime)s] %(message)s", level=logging.INFO)
    np.random.seed(SEED)
    data = pathlib.Path("measurements.csv")
    make_measurements(data)
    frame = pd.read_csv(data)
    x, y = design(frame), frame.response.to_numpy()
    point = fit(x, y)
    log.info("fitted %d rows", len(y))
    replicates = run_bootstrap(x, y)
    log.info("%d replicates", len(replicates))
    replicates.to_csv("replicates.csv", index=False, float_format="%.8f")
    table = intervals(point, replicates)
    pathlib.Path("intervals.json").write_text(json.dumps(table, indent=1))
    for name, row in table.items():
        print(f"{name:10s} {row['estimate']:9.4f}  [{row['low']:9.4f}, {row['high']:9.4f}]  se {row['se']:.4f}")


if __name__ == "__main__":
    main()
