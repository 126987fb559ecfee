"""Ranking metrics over held-out interactions."""
import numpy as np


def ranked_items(scores, train, k):
    masked = scores.copy()
    rows, cols = train.nonzero()
    masked[rows, cols] = -np.inf
    return np.argsort(-masked, axis=1, kind="stable")[:, :k]


def precision_at_k(top, test):
    hits = [np.isin(top[u], test.indices[test.indptr[u]:test.indptr[u + 1]]).mean() for u in range(len(top))]
    return float(np.mean(hits))


def ndcg_at_k(top, test):
    discount = 1.0 / np.log2(np.arange(top.shape[1]) + 2)
    values = []
    for u in range(len(top)):
        held = test.indices[test.indptr[u]:test.indptr[u + 1]]
        if len(held) == 0:
            continue
        gain = np.isin(top[u], held) @ discount
        values.append(gain / discount[: min(len(held), len(discount))].sum())
    return float(np.mean(values))


def coverage(top, n_items):
    return len(np.unique(top)) / n_items
