import argparse

import numpy as np
import pandas as pd
from scipy.stats import poisson

ap = argparse.ArgumentParser()
ap.add_argument("--coverage")
ap.add_argument("--truth")
ap.add_argument("--bin", type=int)
args = ap.parse_args()

cov = pd.read_csv(args.coverage, sep="\t", names=["bin", "count"])
truth = pd.read_csv(args.truth, sep="\t", names=["chrom", "start", "end", "name", "score"])
lam = cov["count"].median()
cov["p"] = poisson.sf(cov["count"] - 1, lam)
cov = cov[cov["p"] < 1e-5]
group = (cov["bin"].diff() > 1).cumsum()
print("start", "end", "max", "logp", "hit", sep="\t")
for _, part in cov.groupby(group):
    start, end = part["bin"].min() * args.bin, (part["bin"].max() + 1) * args.bin
    hit = bool(((truth.start < end) & (truth.end > start)).any())
    logp = -np.log10(np.maximum(part["p"].min(), 1e-300))
    print(start, end, part["count"].max(), f"{logp:.3f}", int(hit), sep="\t")
