"""Synthetic play counts with a few taste groups, in CSR form."""
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp


@dataclass
class Plays:
    matrix: sp.csr_matrix

    @property
    def n_users(self):
        return self.matrix.shape[0]

    @property
    def n_items(self):
        return self.matrix.shape[1]


def make_plays(n_users, n_items, seed, groups=6):
    rng = np.random.default_rng(seed)
    user_group = rng.integers(0, groups, n_users)
    affinity = rng.dirichlet(np.full(n_items, 0.08), size=groups)
    popularity = rng.dirichlet(np.full(n_items, 0.5))
    rows, cols, counts = [], [], []
    for user in range(n_users):
        weights = 0.75 * affinity[user_group[user]] + 0.25 * popularity
        n_plays = int(rng.integers(25, 90))
        items, n = np.unique(rng.choice(n_items, n_plays, p=weights), return_counts=True)
        rows.extend([user] * len(items))
        cols.extend(items)
        counts.extend(n)
    matrix = sp.csr_matrix((np.asarray(counts, dtype=np.float64), (rows, cols)),
                           shape=(n_users, n_items))
    return Plays(matrix)


def split_plays(plays, holdout, seed):
    """Hold out a share of each user's items; returns two CSR matrices."""
    rng = np.random.default_rng(seed + 1)
    train = plays.matrix.tolil(copy=True)
    test = sp.lil_matrix(plays.matrix.shape)
    for user in range(plays.n_users):
        items = plays.matrix[user].indices
        n = int(len(items) * holdout)
        for item in rng.permutation(items)[:n]:
            test[user, item] = train[user, item]
            train[user, item] = 0
    train, test = train.tocsr(), test.tocsr()
    train.eliminate_zeros()
    return train, test
