import argparse
import sys

import numpy as np
import pandas as pd


def shear(rng, length, mean=200.0, shape=10.0):
    sizes = rng.gamma(shape, mean / shape, size=int(length / mean * 1.2)).astype(int) + 40
    ends = np.cumsum(sizes)
    ends = ends[ends < length]
    starts = np.concatenate([[0], ends[:-1]])
    return starts, ends


def pulldown(rng, starts, ends, peaks, background=0.004):
    prob = np.full(len(starts), background)
    for row in peaks.itertuples():
        lo = np.searchsorted(ends, row.start)
        hi = np.searchsorted(starts, row.end)
        prob[lo:hi] = np.maximum(prob[lo:hi], row.score * 0.12)
    return rng.random(len(starts)) < prob


ap = argparse.ArgumentParser()
ap.add_argument("--peaks")
ap.add_argument("--copies", type=int)
ap.add_argument("--length", type=int)
ap.add_argument("--seed", type=int)
args = ap.parse_args()

peaks = pd.read_csv(args.peaks, sep="\t", names=["chrom", "start", "end", "name", "score"])
rng = np.random.default_rng(args.seed)
lines = 0
for copy in range(args.copies // 10):
    starts, ends = shear(rng, args.length)
    keep = pulldown(rng, starts, ends, peaks)
    for s, e in zip(starts[keep], ends[keep]):
        sys.stdout.write(f"chr1\t{s}\t{e}\n")
    lines += int(keep.sum())
print(f"{lines} fragments", file=sys.stderr)
