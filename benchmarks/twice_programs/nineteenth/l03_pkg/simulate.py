"""Paired-end test reads with low-quality tails and adapter read-through."""
import random

ADAPTER = "AGATCGGAAGAGC"
COMP = str.maketrans("ACGT", "TGCA")


def revcomp(seq):
    return seq.translate(COMP)[::-1]


def qualities(rng, n):
    q = []
    level = 38
    for i in range(n):
        level += rng.choice((-1, 0, 0, 0, 1)) - (1 if i > n * 0.65 and rng.random() < 0.55 else 0)
        level = max(2, min(40, level))
        q.append(chr(33 + level))
    return "".join(q)


def write_pairs(path1, path2, n_pairs, read_len=80, genome_len=6000, seed=5):
    rng = random.Random(seed)
    genome = "".join(rng.choice("ACGT") for _ in range(genome_len))
    with open(path1, "w") as f1, open(path2, "w") as f2:
        for i in range(n_pairs):
            insert = rng.randint(60, 220)
            start = rng.randrange(genome_len - insert)
            frag = genome[start:start + insert]
            r1 = (frag + ADAPTER * 3)[:read_len]
            r2 = (revcomp(frag) + ADAPTER * 3)[:read_len]
            f1.write(f"@sim{i}/1\n{r1}\n+\n{qualities(rng, read_len)}\n")
            f2.write(f"@sim{i}/2\n{r2}\n+\n{qualities(rng, read_len)}\n")
