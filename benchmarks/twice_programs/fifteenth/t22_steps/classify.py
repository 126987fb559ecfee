"""Assign reads to taxa by shared k-mers, print the counts."""
import argparse
from collections import Counter


def kmers(seq, k):
    return (seq[i:i + k] for i in range(len(seq) - k + 1))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("genomes")
    p.add_argument("reads")
    p.add_argument("-k", type=int, default=13)
    a = p.parse_args()
    index = {}
    with open(a.genomes) as fh:
        for line in fh:
            name, seq = line.rstrip("\n").split("\t")
            for km in kmers(seq, a.k):
                index.setdefault(km, name)
    counts, unassigned = Counter(), 0
    with open(a.reads) as fh:
        for line in fh:
            _, seq = line.rstrip("\n").split("\t")
            votes = Counter(index[km] for km in kmers(seq, a.k) if km in index)
            if votes:
                counts[max(sorted(votes), key=votes.get)] += 1
            else:
                unassigned += 1
    for name in sorted(counts):
        print(f"{name}\t{counts[name]}")
    print(f"unassigned\t{unassigned}")


if __name__ == "__main__":
    main()
