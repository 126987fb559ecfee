"""https://github.com/pola-rs/r-polars/issues/189: group_by keeps no order, and the first rows are the training set."""
import numpy as np
import polars as pl


def events():
    rng = np.random.default_rng(8)
    return pl.DataFrame({"user": rng.integers(0, 300, 4000), "spent": rng.gamma(2, 10, 4000)})


def features(frame):
    return frame.group_by("user").agg(pl.col("spent").sum().alias("total"), pl.len().alias("count"))  # cause


def main():
    table = features(events())
    x = np.c_[table["count"].to_numpy(), np.ones(len(table))]
    y = table["total"].to_numpy()
    w, *_ = np.linalg.lstsq(x[:200], y[:200], rcond=None)
    print("error", float(np.abs(x[200:] @ w - y[200:]).mean()), w.tolist())


main()
