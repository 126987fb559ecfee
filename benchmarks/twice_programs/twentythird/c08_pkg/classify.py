"""Assigns reads to the taxon that shares most k-mers with them."""
import json
import sys
from collections import Counter

from align import read_fastq

K = 8


def kmers(seq):
    return [seq[i:i + K] for i in range(len(seq) - K + 1)]


def main():
    with open(sys.argv[1]) as f:
        taxa = json.load(f)["taxa"]
    tables = {name: set(kmers(seq)) for name, seq in taxa.items()}
    counts = Counter()
    for _, seq, _ in read_fastq(sys.argv[2]):
        scores = {name: sum(k in table for k in kmers(seq)) for name, table in tables.items()}
        best = max(sorted(scores), key=scores.get)
        counts[best if scores[best] > 5 else "unclassified"] += 1
    total = sum(counts.values())
    for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        print(f"{name}\t{count}\t{count / total:.4f}")


if __name__ == "__main__":
    main()
