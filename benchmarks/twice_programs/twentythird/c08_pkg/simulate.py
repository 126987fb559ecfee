"""Simulates a sample: host reads, and reads of a few microbes."""
import argparse
import json
import random

TAXA = ["Escherichia", "Klebsiella", "Prevotella", "Rothia", "Veillonella"]


def genome(rng, length):
    return "".join(rng.choice("ACGT") for _ in range(length))


def mutate(rng, seq, rate):
    return "".join(rng.choice("ACGT") if rng.random() < rate else base for base in seq)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reads", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--references", required=True)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    host = genome(rng, 5000)
    ancestor = genome(rng, 1200)
    taxa = {name: mutate(rng, ancestor, 0.25) for name in TAXA}
    weights = [rng.uniform(0.5, 3) for _ in TAXA]
    with open(args.references, "w") as f:
        json.dump({"host": host, "taxa": taxa}, f)
    with open(args.out, "w") as f:
        for i in range(args.reads):
            source = host if rng.random() < 0.6 else taxa[rng.choices(TAXA, weights)[0]]
            start = rng.randrange(len(source) - 80)
            seq = mutate(rng, source[start:start + 80], 0.03)
            quality = "".join(chr(33 + rng.randint(20, 40)) for _ in seq)
            f.write(f"@read_{i:06d}\n{seq}\n+\n{quality}\n")


if __name__ == "__main__":
    main()
