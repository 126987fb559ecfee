"""Interaction data with latent tastes, split in time."""
import numpy as np
from scipy import sparse


def make_interactions(n_users, n_items, rng, dim=6, per_user=18):
    users = rng.normal(size=(n_users, dim))
    items = rng.normal(size=(n_items, dim))
    popularity = rng.gamma(1.0, 0.6, size=n_items)
    train_rows, test_rows = [], []
    for u in range(n_users):
        score = items @ users[u] * 0.7 + popularity
        p = np.exp(score - score.max())
        n = int(rng.integers(per_user // 2, per_user + 1))
        liked = rng.choice(n_items, size=n, replace=False, p=p / p.sum())
        cut = max(1, int(0.75 * n))
        train_rows += [(u, i) for i in liked[:cut]]
        test_rows += [(u, i) for i in liked[cut:]]
    shape = (n_users, n_items)
    return to_matrix(train_rows, shape), to_matrix(test_rows, shape)


def to_matrix(rows, shape):
    arr = np.array(rows)
    return sparse.coo_matrix((np.ones(len(arr), dtype=np.float32), arr.T), shape=shape).tocsr()
