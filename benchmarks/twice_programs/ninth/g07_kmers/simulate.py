"""Simulate a k-mer count table for two conditions."""
import argparse

import numpy as np


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--kmers", type=int, default=12000)
    p.add_argument("--reps", type=int, default=4)
    p.add_argument("--k", type=int, default=31)
    p.add_argument("--out", required=True)
    a = p.parse_args()
    rng = np.random.default_rng(a.seed)
    base = rng.lognormal(3.2, 1.1, a.kmers)
    lfc = np.where(rng.random(a.kmers) < 0.08, rng.normal(0, 1.6, a.kmers), 0.0)
    disp = rng.gamma(2.0, 0.08, a.kmers) + 0.01
    depth = rng.uniform(0.6, 1.5, 2 * a.reps)
    cols = []
    for s in range(2 * a.reps):
        mu = base * depth[s] * 2.0 ** (lfc if s >= a.reps else 0)
        cols.append(rng.negative_binomial(1 / disp, 1 / (1 + disp * mu)))
    counts = np.column_stack(cols)
    letters = np.array(list("ACGT"))
    tags = ["".join(x) for x in letters[rng.integers(0, 4, (a.kmers, a.k))]]
    with open(a.out, "w") as f:
        f.write("tag\t" + "\t".join([f"A{i}" for i in range(a.reps)] + [f"B{i}" for i in range(a.reps)]) + "\n")
        for t, row in zip(tags, counts):
            f.write(t + "\t" + "\t".join(map(str, row)) + "\n")


if __name__ == "__main__":
    main()
