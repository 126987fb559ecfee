"""Cleans one shard and prints it."""
import sys
import time
import unicodedata

import numpy as np

t0 = time.time()
rows, sizes = [], []
with open(sys.argv[1]) as f:
    for line in f:
        name, lang, people = line.rstrip("\n").split("\t")
        name = unicodedata.normalize("NFKC", name).strip().strip("?").lower()
        if len(name) < 5:
            continue
        rows.append((name, lang))
        sizes.append(int(people))
logs = np.log10(np.array(sizes, float))
logs = (logs - logs.mean()) / logs.std()
out = "".join(f"{n}\t{l}\t{v:.6f}\n" for (n, l), v in zip(rows, logs))
sys.stdout.write(out)
sys.stdout.flush()
print(f"{sys.argv[1]}: {len(rows)} lines in {time.time() - t0:.3f}s", file=sys.stderr)
