"""Bootstrap standard errors of a nearest neighbour imputed mean.

A probability sample without the outcome is completed from a large
non-probability panel by nearest neighbour matching; the variance of the
estimate comes from bootstrap replicates that a pool of processes works on.

Modelled on: https://github.com/ncn-foreigners/nonprobsvy/issues/115
"""
import multiprocessing as mp
import time

import numpy as np
import pandas as pd

SEED = 2024
PANEL = 4000
SAMPLE = 700
REPLICATES = 60
CORES = 2

_state = {}


def make_data(seed):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, PANEL)
    income = rng.integers(1, 9, PANEL)
    urban = rng.integers(0, 2, PANEL)
    spend = 20 + 0.5 * age + 6 * income + 9 * urban + rng.normal(0, 14, PANEL)
    panel = pd.DataFrame({"age": age, "income": income, "urban": urban, "spend": spend})
    sample = pd.DataFrame({
        "age": rng.integers(18, 80, SAMPLE),
        "income": rng.integers(1, 9, SAMPLE),
        "urban": rng.integers(0, 2, SAMPLE),
        "weight": rng.uniform(50, 250, SAMPLE),
    })
    return panel, sample


def scaled(frame):
    return np.column_stack([frame["age"].to_numpy() / 10.0,
                            frame["income"].to_numpy(dtype=float),
                            frame["urban"].to_numpy() * 2.0])


def start_worker(panel, sample):
    _state["x_panel"] = scaled(panel)
    _state["y_panel"] = panel["spend"].to_numpy()
    _state["x_sample"] = scaled(sample)
    _state["weight"] = sample["weight"].to_numpy()


def break_ties(distance, rng):
    """Index of the nearest donor of each row."""
    best = distance.min(axis=1)
    candidates = distance <= best[:, None] + 1e-12
    draw = np.random.random_sample(candidates.shape)  # cause
    return np.where(candidates, draw, -1.0).argmax(axis=1)


def impute(x_panel, y_panel, x_sample, rng):
    squares = ((x_sample ** 2).sum(1)[:, None] + (x_panel ** 2).sum(1)[None, :]
               - 2 * x_sample @ x_panel.T)
    return y_panel[break_ties(np.round(np.maximum(squares, 0), 9), rng)]


def replicate(b):
    """One bootstrap replicate: resample both files, match, estimate."""
    rng = np.random.default_rng([SEED, b])
    rows = rng.integers(0, len(_state["y_panel"]), 2000)
    units = rng.integers(0, len(_state["weight"]), len(_state["weight"]))
    imputed = impute(_state["x_panel"][rows], _state["y_panel"][rows],
                     _state["x_sample"][units], rng)
    weight = _state["weight"][units]
    return b, float((weight * imputed).sum() / weight.sum()), float(np.median(imputed))


def summarise(frame):
    mean = frame["mean"].to_numpy()
    low, high = np.percentile(mean, [2.5, 97.5])
    return {
        "replicates": len(mean),
        "mean of replicates": mean.mean(),
        "standard error": mean.std(ddof=1),
        "interval low": low,
        "interval high": high,
        "standard error of median": frame["median"].std(ddof=1),
    }


def main():
    began = time.time()
    np.random.seed(SEED)
    panel, sample = make_data(SEED)
    start_worker(panel, sample)
    point = impute(_state["x_panel"], _state["y_panel"], _state["x_sample"],
                   np.random.default_rng([SEED, REPLICATES]))
    weight = _state["weight"]
    naive = panel["spend"].mean()
    print(f"panel {len(panel)}, sample {len(sample)}, mean of the panel {naive:.6f}")
    print(f"point estimate {(weight * point).sum() / weight.sum():.6f}")

    context = mp.get_context("spawn")
    with context.Pool(CORES, initializer=start_worker, initargs=(panel, sample)) as pool:
        rows = pool.map(replicate, range(REPLICATES), chunksize=10)
    frame = pd.DataFrame(rows, columns=["b", "mean", "median"]).sort_values("b")
    frame.to_csv("replicates.csv", index=False, float_format="%.8f")
    for key, value in summarise(frame).items():
        print(f"{key:26s} {value:.6f}" if isinstance(value, float) else f"{key:26s} {value}")
    print(f"time {time.time() - began:.1f} s with {CORES} processes")


if __name__ == "__main__":
    main()
