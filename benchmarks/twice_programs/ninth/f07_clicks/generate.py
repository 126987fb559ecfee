"""Writes one csv of impressions for each hour."""
import argparse
from pathlib import Path

import numpy as np


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--hours", type=int, required=True)
    ap.add_argument("--seed", type=int, required=True)
    ap.add_argument("--out", type=Path, required=True)
    args = ap.parse_args()
    rng = np.random.default_rng(args.seed)
    taste = rng.normal(size=200)
    appeal = rng.normal(size=50)
    for h in range(args.hours):
        n = int(rng.integers(90, 150))
        user = rng.integers(0, 200, n)
        item = rng.integers(0, 50, n)
        age = 18 + (user * 7) % 50
        price = rng.integers(100, 5000, n)
        seen = (rng.random(n) < 0.8).astype(int)
        dwell = rng.integers(1, 100, n)
        z = 0.8 * taste[user] + appeal[item] - price / 2500 + dwell / 60 - 0.5
        click = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
        with open(args.out / f"hour_{h:04d}.csv", "w") as fh:
            fh.write("user,age,hour,item,price,seen,dwell,click\n")
            for row in zip(user, age, [h % 24] * n, item, price, seen, dwell, click):
                fh.write(",".join(str(int(v)) for v in row) + "\n")


if __name__ == "__main__":
    main()
