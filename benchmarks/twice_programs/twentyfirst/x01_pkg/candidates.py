"""Consensus of the reads of each gene, and the candidates that follow."""
import csv
import random
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from .assign import encode

LETTERS = np.frombuffer(b"ACGT", dtype=np.uint8)


@dataclass
class Candidate:
    name: str
    source: str
    sequence: str
    support: float
    n_reads: int
    differences: int
    accepted: bool


def consensus(seqs, threshold=0.6):
    """Column-wise majority, 'N' where no base reaches the threshold."""
    mat = encode(seqs)
    counts = np.stack([(mat == b).sum(axis=0) for b in LETTERS])
    frac = counts / counts.sum(axis=0)
    top = frac.argmax(axis=0)
    strength = frac.max(axis=0)
    chars = [chr(LETTERS[t]) if s >= threshold else "N"
             for t, s in zip(top, strength)]
    return "".join(chars), float(strength.mean())


def split_by_variant(seqs, min_share=0.22):
    """Separate two alleles of one gene at their most informative column."""
    mat = encode(seqs)
    counts = np.stack([(mat == b).sum(axis=0) for b in LETTERS])
    second = np.sort(counts, axis=0)[-2]
    col = int(second.argmax())
    if second[col] < min_share * len(seqs):
        return [seqs]
    order = np.argsort(-counts[:, col], kind="stable")
    major, minor = LETTERS[order[0]], LETTERS[order[1]]
    return [[s for s in seqs if ord(s[col]) == b] for b in (major, minor)]


def downsample(seqs, limit):
    """Consensus building is slow on deep libraries, use at most limit reads."""
    if len(seqs) <= limit:
        return list(seqs)
    return random.sample(seqs, limit)  # cause


def discover_candidates(reads, assignments, database, limit):
    groups = defaultdict(list)
    for (_, seq), (gene, errors) in zip(reads, assignments):
        if errors <= 14:
            groups[gene].append(seq)

    found = []
    for gene in sorted(groups):
        seqs = downsample(groups[gene], limit)
        for part in split_by_variant(seqs):
            if len(part) < 8:
                continue
            cons, support = consensus(part)
            diffs = sum(a != b for a, b in zip(cons, database[gene]))
            accepted = "N" not in cons and diffs > 0
            found.append(Candidate(
                name=f"{gene.split('_')[0]}_S{len(found) + 1:04d}", source=gene,
                sequence=cons, support=support, n_reads=len(part),
                differences=diffs, accepted=accepted))
    return found


def write_table(path, candidates):
    with open(path, "w", newline="") as fh:
        w = csv.writer(fh, delimiter="\t")
        w.writerow(["name", "source", "n_reads", "support", "differences",
                    "accepted", "sequence"])
        for c in candidates:
            w.writerow([c.name, c.source, c.n_reads, f"{c.support:.5f}",
                        c.differences, int(c.accepted), c.sequence])
