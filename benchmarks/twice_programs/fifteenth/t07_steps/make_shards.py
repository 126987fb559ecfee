"""Write raw event shards."""
import argparse
import random
from pathlib import Path


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--shards", type=int, required=True)
    p.add_argument("--rows", type=int, default=1400)
    p.add_argument("--seed", type=int, required=True)
    p.add_argument("--out", type=Path, required=True)
    a = p.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    for s in range(a.shards):
        rng = random.Random(a.seed * 1000 + s)
        n = a.rows + 37 * (s * 7 % 11)
        with open(a.out / f"shard_{s:02d}.tsv", "w") as fh:
            for i in range(n):
                x = [rng.gauss(0, 1) for _ in range(5)]
                score = 1.2 * x[0] - 0.7 * x[1] + 0.4 * x[2] * x[3] + rng.gauss(0, 0.6) + 0.03 * s
                fh.write("\t".join([f"s{s:02d}r{i:04d}", str(int(score > 0))] + [f"{v:.5f}" for v in x]) + "\n")


if __name__ == "__main__":
    main()
