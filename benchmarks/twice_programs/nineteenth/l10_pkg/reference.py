"""A reference with a few chromosomes of different length and GC content."""
import numpy as np

BASES = np.array(list("ACGT"))


def make_reference(lengths, seed):
    rng = np.random.default_rng(seed)
    ref = {}
    for k, n in enumerate(lengths, start=1):
        gc = 0.35 + 0.06 * k
        p = [(1 - gc) / 2, gc / 2, gc / 2, (1 - gc) / 2]
        ref[f"chr{k}"] = "".join(BASES[rng.choice(4, size=n, p=p)])
    return ref


def write_fasta(path, ref, width=70):
    with open(path, "w") as fh:
        for name, seq in ref.items():
            fh.write(f">{name}\n")
            for i in range(0, len(seq), width):
                fh.write(seq[i:i + width] + "\n")
