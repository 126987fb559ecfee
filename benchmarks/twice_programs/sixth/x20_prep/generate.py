import argparse
import os

import numpy as np

PLACES = ["river", "hill", "lake", "town", "road", "bridge", "field", "harbour"]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--shards", type=int, default=10)
    args = ap.parse_args()
    rng = np.random.default_rng(args.seed)
    style = rng.dirichlet(np.full(60, 0.2), size=len(PLACES))
    for k in range(args.shards):
        with open(os.path.join(args.out, f"shard-{k:02d}.txt"), "w") as f:
            for _ in range(70):
                kind = int(rng.integers(len(PLACES)))
                words = rng.choice(60, size=14, p=0.8 * style[kind] + 0.2 / 60)
                f.write(f"{PLACES[kind]}\t" + " ".join(f"s{w}" for w in words) + "\n")


if __name__ == "__main__":
    main()
