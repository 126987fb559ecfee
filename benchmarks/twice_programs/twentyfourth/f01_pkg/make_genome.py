"""Write a random reference genome with a few repeats."""
import argparse
import random


def random_genome(length, rng):
    bases = [rng.choice("ACGT") for _ in range(length)]
    for _ in range(12):
        size = rng.randint(150, 400)
        source = rng.randrange(length - size)
        target = rng.randrange(length - size)
        bases[target:target + size] = bases[source:source + size]
    return "".join(bases)


def write_fasta(path, name, sequence, width=70):
    with open(path, "w") as handle:
        handle.write(f">{name}\n")
        for start in range(0, len(sequence), width):
            handle.write(sequence[start:start + width] + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, default=40000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    genome = random_genome(args.length, random.Random(args.seed))
    write_fasta(args.out, "chr1", genome)


if __name__ == "__main__":
    main()
