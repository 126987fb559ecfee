"""Greedy centroid clustering of trimmed reads and a summary against the known organisms."""
import argparse
import csv
import json
import time
from collections import Counter

import numpy as np


def profile(seq, k=5):
    codes = np.frombuffer(seq.translate(str.maketrans("ACGT", "\0\1\2\3")).encode(), np.uint8).astype(int)
    idx = np.zeros(len(codes) - k + 1, int)
    for j in range(k):
        idx = idx * 4 + codes[j:len(codes) - k + 1 + j]
    v = np.bincount(idx, minlength=4 ** k).astype(np.float32)
    return v / np.linalg.norm(v)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("reads")
    p.add_argument("--identity", type=float, default=0.80)
    p.add_argument("--table", default="otus.csv")
    p.add_argument("--report", default="otus.json")
    a = p.parse_args()
    reads = [line.rstrip("\n").split("\t") for line in open(a.reads)]
    t0 = time.time()
    cents, size, members = np.zeros((0, 4 ** 5), np.float32), [], []
    for name, org, seq in reads:
        v = profile(seq)
        sim = cents @ v if len(size) else np.zeros(0)
        best = int(sim.argmax()) if len(sim) else -1
        if best >= 0 and sim[best] >= a.identity:
            size[best] += 1
            c = cents[best] + (v - cents[best]) / size[best]
            cents[best] = c / np.linalg.norm(c)
            members[best].append(org)
        else:
            cents = np.vstack([cents, v])
            size.append(1)
            members.append([org])
    frac = np.array(sorted(size, reverse=True)) / len(reads)
    purity = sum(Counter(m).most_common(1)[0][1] for m in members) / len(reads)
    rep = {"reads": len(reads), "otus": len(size), "singletons": sum(s == 1 for s in size), "purity": purity,
           "shannon": float(-(frac * np.log(frac)).sum())}
    with open(a.table, "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["otu", "size", "organism"])
        for i in sorted(range(len(size)), key=lambda i: (-size[i], Counter(members[i]).most_common(1)[0][0], i)):
            w.writerow([f"OTU{i}", size[i], Counter(members[i]).most_common(1)[0][0]])
    json.dump({**rep, "sec": time.time() - t0}, open(a.report, "w"))
    print(" ".join(f"{k}={v}" for k, v in rep.items()))


if __name__ == "__main__":
    main()
