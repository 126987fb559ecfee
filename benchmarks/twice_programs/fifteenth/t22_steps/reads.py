"""Simulate reads of a mixed sample with known proportions of taxa."""
import argparse
import random

BASES = "ACGT"


def genome(rng, length):
    return "".join(rng.choice(BASES) for _ in range(length))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--taxa", type=int, default=6)
    p.add_argument("--reads", type=int, default=12000)
    p.add_argument("--length", type=int, default=60)
    p.add_argument("--seed", type=int, required=True)
    p.add_argument("--genomes", required=True)
    p.add_argument("--out", required=True)
    a = p.parse_args()
    rng = random.Random(a.seed)
    genomes = {f"taxon_{t}": genome(rng, 2500) for t in range(a.taxa)}
    with open(a.genomes, "w") as fh:
        for name, seq in genomes.items():
            fh.write(f"{name}\t{seq}\n")
    names = list(genomes)
    weights = [1.0 / (i + 1) for i in range(len(names))]
    with open(a.out, "w") as fh:
        for i in range(a.reads):
            name = rng.choices(names, weights)[0]
            seq = genomes[name]
            pos = rng.randrange(len(seq) - a.length)
            read = list(seq[pos:pos + a.length])
            for j in range(a.length):
                if rng.random() < 0.02:
                    read[j] = rng.choice(BASES)
            fh.write(f"read{i:06d}\t{''.join(read)}\n")


if __name__ == "__main__":
    main()
