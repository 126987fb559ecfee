"""Simulate a diploid sample and its aligned read pairs."""
import argparse

import numpy as np

BASES = np.array(list("ACGT"))
READ = 100


def make_genome(rng, size):
    reference = rng.integers(0, 4, size)
    sites = np.sort(rng.choice(np.arange(200, size - 200), size=size // 250, replace=False))
    alternative = (reference[sites] + rng.integers(1, 4, len(sites))) % 4
    genotype = rng.choice([1, 2], size=len(sites), p=[0.65, 0.35])
    return reference, sites, alternative, genotype


def haplotypes(rng, reference, sites, alternative, genotype):
    pair = [reference.copy(), reference.copy()]
    for site, alt, gt in zip(sites, alternative, genotype):
        carriers = (0, 1) if gt == 2 else (int(rng.integers(2)),)
        for which in carriers:
            pair[which][site] = alt
    return pair


def write_reads(path, rng, reference, pair, coverage, error=0.012):
    size = len(reference)
    n_pairs = int(size * coverage / (2 * READ))
    with open(path, "w") as handle:
        handle.write(f"@size\t{size}\n")
        handle.write("@reference\t" + "".join(BASES[reference]) + "\n")
        for k in range(n_pairs):
            template = pair[int(rng.integers(2))]
            insert = int(np.clip(rng.normal(350, 40), 2 * READ + 10, 600))
            start = int(rng.integers(0, size - insert))
            for mate, position in ((1, start), (2, start + insert - READ)):
                read = template[position:position + READ].copy()
                wrong = rng.random(READ) < error
                read[wrong] = (read[wrong] + rng.integers(1, 4, int(wrong.sum()))) % 4
                handle.write(f"pair{k:06d}\t{mate}\t{position}\t{''.join(BASES[read])}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--coverage", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--truth", required=True)
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    reference, sites, alternative, genotype = make_genome(rng, args.size)
    pair = haplotypes(rng, reference, sites, alternative, genotype)
    write_reads(args.out, rng, reference, pair, args.coverage)
    with open(args.truth, "w") as handle:
        for site, alt, gt in zip(sites, alternative, genotype):
            handle.write(f"{site}\t{BASES[alt]}\t{gt}\n")


if __name__ == "__main__":
    main()
