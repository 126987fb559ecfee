"""Jaccard based distances of the sampled assemblies against the rest."""
import json
import sys

import numpy as np

sketches = {}
with open(sys.argv[1]) as fh:
    for line in fh:
        name, *vals = line.rstrip("\n").split("\t")
        sketches[name] = set(int(v) for v in vals)
chosen = [line.strip() for line in open(sys.argv[2])]
rest = [n for n in sketches if n not in chosen]
dist = np.zeros((len(chosen), len(rest)))
for i, a in enumerate(chosen):
    for j, b in enumerate(rest):
        inter = len(sketches[a] & sketches[b])
        dist[i, j] = 1 - inter / len(sketches[a] | sketches[b])
nearest = dist.min(axis=0)
report = {
    "chosen": chosen,
    "mean_distance": round(float(dist.mean()), 7),
    "covered": int((nearest < 0.75).sum()),
    "worst": rest[int(nearest.argmax())],
}
json.dump(report, open(sys.argv[3], "w"), indent=1)
print("mean distance", report["mean_distance"], "covered", report["covered"])
