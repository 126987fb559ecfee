"""Weights of samples by datetime.now(); of no single report."""
from datetime import datetime, timedelta

import numpy as np


def visits(n=50):
    rng = np.random.default_rng(5)
    return [datetime(2024, 1, 1) + timedelta(seconds=int(s)) for s in rng.integers(0, 10**7, n)]


def weights(days, half_life):
    now = datetime.now()  # cause
    age = np.array([(now - day).total_seconds() for day in days])
    return 0.5 ** (age / half_life)


def main():
    days = visits()
    w = weights(days, 86400 * 30)
    value = np.random.default_rng(0).normal(size=len(days))
    print("mean", np.average(value, weights=w), "effective", w.sum() ** 2 / (w * w).sum())
    np.save("weights.npy", w / w.sum())


main()
