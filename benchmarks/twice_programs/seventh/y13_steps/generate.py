"""Writes raw shards of labelled place names."""
import argparse
import random
from pathlib import Path

ap = argparse.ArgumentParser()
ap.add_argument("--shards", type=int)
ap.add_argument("--seed", type=int)
ap.add_argument("--out", type=Path)
args = ap.parse_args()

ENDS = {"no": ["vik", "fjord", "dal", "nes", "heim"], "de": ["burg", "stadt", "dorf", "heim", "bach"],
        "pl": ["owo", "ice", "sko", "grod", "wiec"]}
STEMS = "al ber cor dan el fin gar hol ing jar kol lun mar nor os pel rog sten tor ul var".split()

rng = random.Random(args.seed)
for k in range(args.shards):
    lines = []
    for _ in range(220):
        lang = rng.choice(sorted(ENDS))
        name = "".join(rng.sample(STEMS, rng.randint(1, 2))) + rng.choice(ENDS[lang])
        if rng.random() < 0.1:
            name = name.upper()
        if rng.random() < 0.05:
            name = "  " + name + "?"
        lines.append(f"{name}\t{lang}\t{rng.randint(50, 90000)}")
    (args.out / f"shard-{k:03d}.tsv").write_text("\n".join(lines) + "\n")
