"""Simulate single end reads from a mutated copy of a genome."""
import argparse
import random
import time

READ = 80


def read_fasta(path):
    with open(path) as handle:
        return "".join(line.strip() for line in handle if not line.startswith(">"))


def mutate(genome, rate, rng):
    out = []
    for base in genome:
        if rng.random() < rate:
            out.append(rng.choice([b for b in "ACGT" if b != base]))
        else:
            out.append(base)
    return "".join(out)


def sample_reads(donor, count, error, distance, rng):
    for number in range(count):
        insert = max(READ, int(rng.gauss(distance, 20)))
        start = rng.randrange(len(donor) - insert)
        read = list(donor[start:start + READ])
        for i in range(READ):
            if rng.random() < error:
                read[i] = rng.choice("ACGT")
        yield f"r{number}_{start}", "".join(read)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--genome", required=True)
    parser.add_argument("--reads", type=int, default=500)
    parser.add_argument("--distance", type=int, default=200)
    parser.add_argument("--error", type=float, default=0.02)
    parser.add_argument("--mutation", type=float, default=0.001)
    parser.add_argument("--seed", type=int, default=-1)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    seed = args.seed if args.seed > 0 else int(time.time())  # cause
    rng = random.Random(seed)
    donor = mutate(read_fasta(args.genome), args.mutation, rng)
    with open(args.out, "w") as handle:
        for name, read in sample_reads(donor, args.reads, args.error, args.distance, rng):
            handle.write(f"@{name}\n{read}\n+\n{'I' * len(read)}\n")


if __name__ == "__main__":
    main()
