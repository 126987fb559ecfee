#!/usr/bin/env python
"""Time-resolved decoding with a permutation test.

Modelled on https://github.com/joblib/joblib/issues/1158

Decodes two conditions from simulated sensor data at several time points,
compares the scores with permuted labels and writes p values per time point.
"""
import argparse
import csv
import json
import logging
import random
import socket
from pathlib import Path

import numpy as np

from t09_pkg import PermutationTest, make_epochs

log = logging.getLogger("decode")


def parse_args():
    p = argparse.ArgumentParser(description="decoding with permutation statistics")
    p.add_argument("--epochs", type=int, default=60)
    p.add_argument("--channels", type=int, default=12)
    p.add_argument("--n-times", type=int, default=40)
    p.add_argument("--snr", type=float, default=0.22)
    p.add_argument("--permutations", type=int, default=16)
    p.add_argument("--n-jobs", type=int, default=2)
    p.add_argument("--backend", default="loky", choices=["loky", "multiprocessing", "threading"])
    p.add_argument("--seed", type=int, default=1158)
    p.add_argument("--out", type=Path, default=Path("decoding"))
    return p.parse_args()


def write_table(path, result):
    with open(path, "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["time", "auc", "p", "p_max", "null_mean", "null_std"])
        for j, t in enumerate(result.times):
            w.writerow([t, f"{result.observed[j]:.6f}", f"{result.p_values[j]:.6f}",
                        f"{result.p_max[j]:.6f}", f"{result.null[:, j].mean():.6f}",
                        f"{result.null[:, j].std():.6f}"])


def main():
    args = parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    random.seed(args.seed)
    np.random.seed(args.seed)
    args.out.mkdir(parents=True, exist_ok=True)
    log.info("running on %s with %d jobs (%s)", socket.gethostname(), args.n_jobs, args.backend)

    X, y = make_epochs(args.epochs, args.channels, args.n_times, args.snr, args.seed)
    times = list(range(4, args.n_times, 12))
    test = PermutationTest(args.permutations, args.n_jobs, args.backend)
    result = test.run(X, y, times)
    write_table(args.out / "decoding.csv", result)
    significant = [t for t, p in zip(result.times, result.p_max) if p <= 0.05]
    summary = {
        "peak_auc": round(float(result.observed.max()), 5),
        "threshold": round(result.threshold(), 6),
        "significant": significant,
        "null_mean": round(float(result.null.mean()), 6),
    }
    (args.out / "summary.json").write_text(json.dumps(summary, indent=2))
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
