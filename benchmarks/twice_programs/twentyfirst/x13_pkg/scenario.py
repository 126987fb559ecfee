"""Demand scenario: expected number of new users in every block."""
import argparse
import csv

import numpy as np


def build(seed, blocks):
    rng = np.random.default_rng(seed)
    level, rows = 130.0, []
    for block in range(blocks):
        if rng.random() < 0.03:
            level = rng.uniform(90, 260)
        season = 1 + 0.15 * np.sin(2 * np.pi * block / 60)
        rows.append((block, round(level * season, 4)))
    return rows


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, required=True)
    ap.add_argument("--blocks", type=int, required=True)
    ap.add_argument("--out", required=True)
    args = ap.parse_args()
    with open(args.out, "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["block", "demand"])
        w.writerows(build(args.seed, args.blocks))


if __name__ == "__main__":
    main()
