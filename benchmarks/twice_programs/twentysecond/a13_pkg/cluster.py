"""Cluster fragments by label propagation over contacts; score against the truth."""
import csv
import json
import sys
from collections import Counter

import numpy as np
from contacts import fragments


def propagate(matrix, rounds=12):
    weights = matrix - np.diag(np.diag(matrix))
    labels = np.arange(len(weights))
    for _ in range(rounds):
        changed = 0
        for i in range(len(labels)):
            votes = np.bincount(labels, weights=weights[i], minlength=len(labels))
            best = int(np.argmax(votes))
            if votes[best] > votes[labels[i]]:
                labels[i] = best
                changed += 1
        if not changed:
            break
    return labels


def purity(labels, names):
    good = 0
    for label in sorted(set(labels.tolist())):
        members = Counter(n for n, l in zip(names, labels) if l == label)
        good += members.most_common(1)[0][1]
    return good / len(names)


def main():
    community, contacts, target = sys.argv[1:4]
    with open(community) as fh:
        _, names = fragments(json.load(fh))
    labels = propagate(np.load(contacts))
    with open(target, "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["fragment", "truth", "cluster"])
        for i, (name, label) in enumerate(zip(names, labels)):
            writer.writerow([i, name, int(label)])
    print(f"clusters {len(set(labels.tolist()))}, purity {purity(labels, names):.4f}")


if __name__ == "__main__":
    main()
