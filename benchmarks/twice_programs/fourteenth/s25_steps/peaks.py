import argparse

import numpy as np
import pandas as pd
from scipy.stats import poisson

ap = argparse.ArgumentParser()
ap.add_argument("--input")
ap.add_argument("--threshold", type=float)
args = ap.parse_args()

tags = pd.read_csv(args.input, sep="\t", names=["chrom", "start", "end", "name", "score", "strand"])
tags["bin"] = (tags.start + np.where(tags.strand == "+", 60, -60)).clip(lower=0) // 150
counts = tags.groupby(["chrom", "bin"]).size().rename("n").reset_index()
rate = counts.groupby("chrom")["n"].transform("median")
counts["logp"] = -poisson.logsf(counts["n"] - 1, np.maximum(rate, 1.0)) / np.log(10)
called = counts[counts.logp >= args.threshold].sort_values(["chrom", "bin"])
for row in called.itertuples():
    print(row.chrom, row.bin * 150, (row.bin + 1) * 150, f"{row.logp:.4f}", row.n, sep="\t")
