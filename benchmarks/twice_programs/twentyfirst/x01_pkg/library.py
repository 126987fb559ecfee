"""Germline database and simulated control library."""
import random

BASES = "ACGT"


def _mutate(seq, rng, n):
    s = list(seq)
    for pos in rng.sample(range(len(s)), n):
        s[pos] = rng.choice([b for b in BASES if b != s[pos]])
    return "".join(s)


def make_database(seed, n_genes, length):
    """Known genes, and the true alleles carried by the simulated animal."""
    rng = random.Random(seed)
    database, truth = {}, {}
    for k in range(n_genes):
        seq = "".join(rng.choice(BASES) for _ in range(length))
        name = f"IGHV{1 + k % 4}-{k + 1}*01"
        database[name] = seq
        truth[name] = seq
        if k % 2 == 0:
            truth[name[:-2] + "02"] = _mutate(seq, rng, rng.randint(2, 4))
    return database, truth


def simulate_library(truth, n_reads, seed, error=0.012, shm=0.02):
    """Reads with sequencing errors and somatic hypermutation."""
    rng = random.Random(seed)
    names = sorted(truth)
    weights = [1.0 + (i * 7 % 5) for i in range(len(names))]
    reads = []
    for i in range(n_reads):
        origin = rng.choices(names, weights)[0]
        rate = error + (shm if rng.random() < 0.6 else 0.0)
        seq = truth[origin]
        out = []
        for base in seq:
            if rng.random() < rate:
                base = rng.choice(BASES)
            out.append(base)
        reads.append((f"read{i:05d}", "".join(out)))
    return reads
