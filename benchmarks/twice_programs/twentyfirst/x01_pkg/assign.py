"""Assign every read to its closest V gene."""
import numpy as np


def encode(seqs):
    return np.frombuffer("".join(seqs).encode(), dtype=np.uint8).reshape(
        len(seqs), -1)


def assign_reads(reads, database):
    """Return a list of (gene name, number of differences), one per read."""
    names = sorted(database)
    ref = encode([database[n] for n in names])
    mat = encode([seq for _, seq in reads])
    dist = np.stack([(mat != r).sum(axis=1) for r in ref], axis=1)
    best = dist.argmin(axis=1)
    return [(names[j], int(dist[i, j])) for i, j in enumerate(best)]
