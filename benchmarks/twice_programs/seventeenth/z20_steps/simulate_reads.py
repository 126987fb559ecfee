"""Noisy barcode segments of long reads, from cells and from background barcodes."""
import argparse
from pathlib import Path

import numpy as np


def read_fasta(path):
    lines = Path(path).read_text().split()
    return [x for x in lines if not x.startswith(">")]


def corrupt(code, rng, sub=0.05, ins=0.03, dele=0.04):
    out = []
    for base in code:
        roll = rng.random()
        if roll < dele:
            continue
        if roll < dele + sub:
            base = "ACGT"[rng.integers(0, 4)]
        out.append(base)
        if rng.random() < ins:
            out.append("ACGT"[rng.integers(0, 4)])
    return "".join(out)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--whitelist", type=Path, required=True)
    ap.add_argument("--background", type=Path)
    ap.add_argument("--reads", type=int, required=True)
    ap.add_argument("--seed", type=int, required=True)
    ap.add_argument("--out", type=Path, required=True)
    args = ap.parse_args()
    rng = np.random.default_rng(args.seed)

    cells = args.whitelist.read_text().split()
    other = read_fasta(args.background) if args.background else []
    weight = rng.dirichlet(np.full(len(cells), 2.0))
    with open(args.out, "w") as fh:
        for k in range(args.reads):
            if other and rng.random() < 0.4:
                code, origin = other[rng.integers(0, len(other))], "background"
            elif not other and rng.random() < 0.15:
                code, origin = "".join("ACGT"[b] for b in rng.integers(0, 4, 12)), "unknown"
            else:
                code = cells[rng.choice(len(cells), p=weight)]
                origin = code
            tail = "".join("ACGT"[b] for b in rng.integers(0, 4, 3))
            fh.write(f"r{k:05d}\t{corrupt(code, rng) + tail}\t{origin}\n")
    print(f"  {args.reads} reads, {len(other)} background barcodes")


if __name__ == "__main__":
    main()
