"""Simulate sequencing plates with reads from a set of reference organisms."""
import argparse
from pathlib import Path

import numpy as np


def mutate(seq, rate, rng):
    out = seq.copy()
    hit = rng.random(len(seq)) < rate
    out[hit] = rng.integers(0, 4, hit.sum())
    return out


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--plates", type=int, default=24)
    p.add_argument("--reads", type=int, default=320)
    p.add_argument("--organisms", type=int, default=14)
    p.add_argument("--length", type=int, default=160)
    p.add_argument("--outdir", required=True)
    a = p.parse_args()
    rng = np.random.default_rng(a.seed)
    root = rng.integers(0, 4, a.length)
    refs = [mutate(root, 0.09, rng) for _ in range(a.organisms)]
    abundance = rng.dirichlet(np.full(a.organisms, 0.6))
    letters = np.array(list("ACGT"))
    out = Path(a.outdir)
    out.mkdir(parents=True, exist_ok=True)
    for k in range(a.plates):
        with open(out / f"plate{k:02d}.fastq", "w") as f:
            for r in range(a.reads):
                o = rng.choice(a.organisms, p=abundance)
                seq = mutate(refs[o], 0.015, rng)
                qual = np.clip(rng.normal(33 - 12 * np.arange(a.length) / a.length, 4), 2, 40).astype(int)
                f.write(f"@p{k:02d}_r{r:04d} org={o}\n{''.join(letters[seq])}\n+\n{''.join(chr(33 + q) for q in qual)}\n")


if __name__ == "__main__":
    main()
