import argparse

import numpy as np

ap = argparse.ArgumentParser()
ap.add_argument("--length", type=int)
ap.add_argument("--peaks", type=int)
ap.add_argument("--seed", type=int)
args = ap.parse_args()

rng = np.random.default_rng(args.seed)
starts = np.sort(rng.choice(args.length // 2000, size=args.peaks, replace=False)) * 2000
for k, start in enumerate(starts):
    width = int(rng.integers(300, 900))
    score = float(rng.gamma(2.0, 0.3))
    print("chr1", start, start + width, f"peak{k}", f"{min(score, 1.0):.3f}", sep="\t")
