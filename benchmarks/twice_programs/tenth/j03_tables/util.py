"""Sampling helpers used by the labs."""
import math

import numpy as np


def percentile(p, values):
    """The smallest value that is at least as large as p percent of the values."""
    ordered = sorted(values)
    k = max(int(math.ceil(p / 100 * len(ordered))) - 1, 0)
    return ordered[k]


def proportions_from_counts(counts):
    counts = np.asarray(counts, dtype=float)
    return counts / counts.sum()


def sample_proportions(sample_size, probabilities):
    """Proportions of the categories in a random sample from a distribution."""
    rng = np.random.default_rng()  # cause
    return rng.multinomial(sample_size, probabilities) / sample_size  # cause


def bootstrap_medians(values, repetitions):
    values = np.asarray(values)
    out = np.empty(repetitions)
    for i in range(repetitions):
        out[i] = np.median(np.random.choice(values, len(values)))
    return out
