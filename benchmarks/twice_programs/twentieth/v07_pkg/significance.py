"""SAM-like statistics and their permutation FDR."""
from itertools import combinations

import numpy as np


def test_statistics(y, condition, s0):
    a, b = y[:, condition == 0], y[:, condition == 1]
    fold_change = b.mean(axis=1) - a.mean(axis=1)
    na, nb = a.shape[1], b.shape[1]
    pooled = ((na - 1) * a.var(axis=1, ddof=1) + (nb - 1) * b.var(axis=1, ddof=1)) / (na + nb - 2)
    scatter = np.sqrt(pooled * (1 / na + 1 / nb))
    return {"fold_change": fold_change, "scatter": scatter, "d": fold_change / (scatter + s0)}


def balanced_permutations(condition):
    """All ways to exchange the labels that keep the group sizes."""
    n = len(condition)
    original = tuple(np.flatnonzero(condition == 1))
    for chosen in combinations(range(n), int(condition.sum())):
        if 0 in chosen or chosen == original:
            continue
        labels = np.zeros(n, dtype=int)
        labels[list(chosen)] = 1
        yield labels


def permutation_fdr(y, condition, stats, s0):
    observed = np.sort(np.abs(stats["d"]))
    exceed = np.zeros(len(observed))
    n_perm = 0
    for labels in balanced_permutations(condition):
        null = np.sort(np.abs(test_statistics(y, labels, s0)["d"]))
        exceed += len(null) - np.searchsorted(null, observed, side="left")
        n_perm += 1
    called = len(observed) - np.arange(len(observed))
    fdr_sorted = np.minimum(1.0, exceed / n_perm / called)
    fdr_sorted = np.minimum.accumulate(fdr_sorted)
    order = np.argsort(np.abs(stats["d"]), kind="stable")
    fdr = np.empty_like(fdr_sorted)
    fdr[order] = fdr_sorted
    return fdr
