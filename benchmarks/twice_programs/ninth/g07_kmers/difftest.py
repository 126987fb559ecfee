"""Negative binomial test of one chunk of k-mers, with dispersion shrinkage inside the chunk."""
import argparse
import time

import numpy as np
from scipy import stats


def size_factors(c):
    logs = np.log(c[(c > 0).all(1)])
    return np.exp(np.median(logs - logs.mean(1, keepdims=True), axis=0))


def dispersions(norm, groups):
    mu = norm.mean(1)
    var = np.mean([norm[:, groups == g].var(1, ddof=1) for g in (0, 1)], axis=0)
    raw = np.maximum((var - mu) / np.maximum(mu, 1e-9) ** 2, 1e-4)
    ok = mu > 1
    slope, icept = np.polyfit(1 / mu[ok], raw[ok], 1)
    trend = np.maximum(icept + slope / np.maximum(mu, 1e-9), 1e-3)
    prior = np.var(np.log(raw[ok]) - np.log(trend[ok]))
    w = prior / (prior + 0.7)
    return np.exp(w * np.log(raw) + (1 - w) * np.log(trend))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("chunk")
    p.add_argument("out")
    p.add_argument("--reps", type=int, default=4)
    a = p.parse_args()
    t0 = time.time()
    tags, rows = [], []
    with open(a.chunk) as f:
        for line in f:
            t, *v = line.rstrip("\n").split("\t")
            tags.append(t)
            rows.append([int(x) for x in v])
    c = np.array(rows, float)
    norm = c / size_factors(c)
    groups = np.repeat([0, 1], a.reps)
    disp = dispersions(norm, groups)
    ma, mb = norm[:, :a.reps].mean(1), norm[:, a.reps:].mean(1)
    lfc = np.log2((mb + 0.5) / (ma + 0.5))
    se = np.sqrt(((1 / (ma + 0.5) + disp) + (1 / (mb + 0.5) + disp)) / a.reps) / np.log(2)
    pval = 2 * stats.norm.sf(np.abs(lfc / se))
    with open(a.out, "w") as f:
        for t, m, x, q in zip(tags, (ma + mb) / 2, lfc, pval):
            f.write(f"{t}\t{m:.6f}\t{x:.6f}\t{q:.6e}\n")
    print(f"{a.chunk}: {len(tags)} k-mers in {time.time() - t0:.2f}s ({len(tags) / (time.time() - t0):.0f}/s)")


if __name__ == "__main__":
    main()
