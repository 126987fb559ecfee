"""Pile up the reads and call the genotype of each position."""
import argparse

import numpy as np

CODE = {base: k for k, base in enumerate("ACGT")}
LOOKUP = np.full(256, 0, dtype=np.int8)
for _base, _k in CODE.items():
    LOOKUP[ord(_base)] = _k


def pileup(path, size):
    counts = np.zeros((size, 4), dtype=np.int32)
    reference = None
    with open(path) as handle:
        for line in handle:
            if line.startswith("@"):
                key, value = line.rstrip("\n").split("\t")
                if key == "@reference":
                    reference = LOOKUP[np.frombuffer(value.encode(), dtype=np.uint8)]
                continue
            _, _, position, read = line.rstrip("\n").split("\t")
            bases = LOOKUP[np.frombuffer(read.encode(), dtype=np.uint8)]
            where = int(position) + np.arange(len(bases))
            counts[where, bases] += 1
    return counts, reference


def genotype(counts, reference, error=0.012):
    """Likelihoods of none, one or two copies of the best other base."""
    size = len(reference)
    index = np.arange(size)
    ref_count = counts[index, reference]
    others = counts.copy()
    others[index, reference] = -1
    alt = others.argmax(axis=1)
    alt_count = others[index, alt]
    logs = []
    for copies in (0, 1, 2):
        p = np.clip(copies / 2, error, 1 - error)
        logs.append(alt_count * np.log(p) + ref_count * np.log(1 - p))
    prior = np.log([0.996, 0.0025, 0.0015])
    score = np.array(logs) + prior[:, None]
    best = score.argmax(axis=0)
    quality = score.max(axis=0) - score[0]
    return alt, best, quality, ref_count + alt_count


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", required=True)
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    counts, reference = pileup(args.input, args.size)
    alt, best, quality, depth = genotype(counts, reference)
    with open(args.out, "w") as handle:
        for site in np.flatnonzero((best > 0) & (quality > 3) & (depth > 1)):
            handle.write(f"{site}\t{'ACGT'[alt[site]]}\t{best[site]}\t{quality[site]:.3f}\t{depth[site]}\n")


if __name__ == "__main__":
    main()
