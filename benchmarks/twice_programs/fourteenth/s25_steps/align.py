import argparse
import sys

import numpy as np

ap = argparse.ArgumentParser()
ap.add_argument("--reads", type=int)
ap.add_argument("--seed", type=int)
args = ap.parse_args()

rng = np.random.default_rng(args.seed)
chroms = {"chr1": 900_000, "chr2": 700_000, "chr3": 400_000}
names = list(chroms)
sites = [(names[int(rng.integers(3))], rng.random(), rng.gamma(1.5, 1.0)) for _ in range(150)]
weights = np.array([s[2] for s in sites]) / sum(s[2] for s in sites)
out = []
for k in range(args.reads):
    if rng.random() < 0.35:
        chrom, where, _ = sites[int(rng.choice(len(sites), p=weights))]
        pos = int(where * chroms[chrom] + rng.normal(0, 90))
    else:
        chrom = names[int(rng.integers(3))]
        pos = int(rng.random() * chroms[chrom])
    pos = max(pos, 0)
    strand = "+-"[int(rng.integers(2))]
    out.append(f"{chrom}\t{pos}\t{pos + 36}\tN\t1000\t{strand}\n")
sys.stdout.writelines(out)
