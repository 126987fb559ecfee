"""Write assemblies as FASTA, mutated from one reference."""
import sys

import numpy as np

n, length, seed, path = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
rng = np.random.default_rng(seed)
ref = rng.integers(0, 4, size=length)
letters = np.array(list("ACGT"))
with open(path, "w") as fh:
    for i in range(n):
        seq = ref.copy()
        k = int(length * rng.uniform(0.01, 0.12))
        pos = rng.choice(length, size=k, replace=False)
        seq[pos] = rng.integers(0, 4, size=k)
        cut = rng.integers(0, length // 20)
        fh.write(f">asm#{i:04d}\n{''.join(letters[seq[cut:]])}\n")
