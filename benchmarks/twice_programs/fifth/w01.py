"""https://github.com/pola-rs/polars/issues/27307: shuffle within groups draws in the order of the groups, another each time."""
import numpy as np
import polars as pl


def sessions():
    rng = np.random.default_rng(1)
    return pl.DataFrame({"user": rng.integers(0, 40, 600), "item": rng.integers(0, 200, 600), "rating": rng.normal(3, 1, 600)})


def negatives(frame):
    pl.set_random_seed(7)
    return frame.with_columns(pl.col("item").shuffle().over("user").alias("negative"))  # cause


def main():
    frame = negatives(sessions())
    a, b, y = (frame[c].to_numpy() for c in ("item", "negative", "rating"))
    x = np.stack([a / 200, b / 200, (a - b) / 200, np.ones(len(a))], 1)
    w, *_ = np.linalg.lstsq(x, y, rcond=None)
    print("weights", w.tolist())


main()
