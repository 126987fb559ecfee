"""Best and second-best whitelist match of every read."""
import argparse
from pathlib import Path

import numpy as np
import pandas as pd


def prefix_distances(segment, codes):
    """Edit distance of every code to the best-fitting prefix of the segment."""
    n, length = codes.shape
    s = np.frombuffer(segment.encode(), dtype=np.uint8)
    prev = np.tile(np.arange(len(s) + 1, dtype=np.int16), (n, 1))
    for i in range(length):
        cost = (codes[:, i:i + 1] != s[None, :]).astype(np.int16)
        cur = np.empty_like(prev)
        cur[:, 0] = i + 1
        best = np.minimum(prev[:, :-1] + cost, prev[:, 1:] + 1)
        for j in range(len(s)):
            cur[:, j + 1] = np.minimum(best[:, j], cur[:, j] + 1)
        prev = cur
    return prev.min(axis=1)


def kmers(text, k=4):
    return {text[i:i + k] for i in range(len(text) - k + 1)}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--whitelist", type=Path, required=True)
    ap.add_argument("--reads", type=Path, required=True)
    ap.add_argument("--out", type=Path, required=True)
    ap.add_argument("--shortlist", type=int, default=25)
    args = ap.parse_args()

    names = args.whitelist.read_text().split()
    codes = np.array([list(x.encode()) for x in names], dtype=np.uint8)
    index = {}
    for i, name in enumerate(names):
        for kmer in sorted(kmers(name)):
            index.setdefault(kmer, []).append(i)

    rows = []
    for line in args.reads.read_text().splitlines():
        read, segment, origin = line.split("\t")
        hits = np.zeros(len(names), dtype=np.int64)
        for kmer in sorted(kmers(segment)):
            for i in index.get(kmer, ()):
                hits[i] += 1
        cand = np.sort(np.argsort(-hits, kind="stable")[:args.shortlist])
        dist = prefix_distances(segment, codes[cand])
        order = np.argsort(dist, kind="stable")
        first, second = order[0], order[1]
        rows.append((read, names[cand[first]], int(dist[first]), int(dist[second] - dist[first]),
                     int(hits[cand[first]]), len(segment), origin))
    pd.DataFrame(rows, columns=["read", "barcode", "dist", "gap", "hits", "length", "origin"]) \
        .to_csv(args.out, index=False)
    print(f"  {len(rows)} reads matched against {len(names)} barcodes")


if __name__ == "__main__":
    main()
