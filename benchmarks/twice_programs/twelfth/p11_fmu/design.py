"""Step 1: make a Monte Carlo design matrix from the design input."""
import argparse
import csv

import numpy as np
from scipy import stats

from p11_fmu import config


def correlation_matrix(names, pairs):
    c = np.eye(len(names))
    for a, b, rho in pairs:
        i, j = names.index(a), names.index(b)
        c[i, j] = c[j, i] = rho
    return c


def quantile(spec, u):
    kind, args = spec["dist"], spec["args"]
    if kind == "normal":
        return stats.norm.ppf(u, *args)
    if kind == "uniform":
        return args[0] + u * (args[1] - args[0])
    if kind == "loguniform":
        lo, hi = np.log(args)
        return np.exp(lo + u * (hi - lo))
    if kind == "triangular":
        lo, mode, hi = args
        return stats.triang.ppf(u, (mode - lo) / (hi - lo), lo, hi - lo)
    raise ValueError(f"unknown distribution {kind}")


def generate(inp):
    rng = np.random.default_rng(inp.distribution_seed)  # cause
    names = list(inp.variables)
    chol = np.linalg.cholesky(correlation_matrix(names, inp.correlations))
    z = rng.standard_normal((inp.repeats, len(names))) @ chol.T  # cause
    u = stats.norm.cdf(z)
    return names, np.column_stack([quantile(inp.variables[n], u[:, i]) for i, n in enumerate(names)])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("input")
    ap.add_argument("output")
    args = ap.parse_args()
    inp = config.read(args.input)
    names, values = generate(inp)
    with open(args.output, "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["REAL", "RMS_SEED", *names])
        for k, row in enumerate(values):
            w.writerow([k, inp.rms_seeds + k, *(f"{v:.6g}" for v in row)])
    print(f"design matrix: {len(values)} realisations x {len(names)} parameters")


if __name__ == "__main__":
    main()
