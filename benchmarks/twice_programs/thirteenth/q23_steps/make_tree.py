"""Write a small source tree to search in."""
import random
import sys
from pathlib import Path

root, files, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = random.Random(seed)
names = ["load", "parse", "emit", "walk", "merge", "split", "index", "scan"]
types = ["int", "string", "error", "[]byte", "bool"]
for i in range(files):
    lines = [f"package p{i % 7}", ""]
    for k in range(rng.randrange(40, 220)):
        if rng.random() < 0.25:
            lines.append(f"func {rng.choice(names)}{k}(a {rng.choice(types)}) {rng.choice(types)} {{")
        else:
            lines.append(f"\tx{k} := {rng.choice(names)}({rng.randrange(1000)})")
    path = root / f"pkg{i % 9}" / f"file{i:03d}.go"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
