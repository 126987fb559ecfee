"""Base class of all independence tests."""
import time
from abc import ABC, abstractmethod

import numpy as np


def pairwise(x):
    x = np.asarray(x, dtype=float)
    if x.ndim == 1:
        x = x[:, None]
    diff = x[:, None, :] - x[None, :, :]
    return np.sqrt((diff ** 2).sum(axis=-1))


class IndependenceTest(ABC):
    """A test statistic together with its permutation p-value."""

    name = "base"

    def prepare(self, x, y):
        """Matrices the statistic is computed from."""
        return pairwise(x), pairwise(y)

    @abstractmethod
    def statistic(self, a, b):
        """Statistic of two prepared n x n matrices."""

    def p_value(self, x, y, replication_factor=1000):
        """Permutation p-value with the usual add-one correction."""
        a, b = self.prepare(x, y)
        observed = self.statistic(a, b)
        np.random.seed(int(time.time()))  # cause
        null = np.empty(replication_factor)
        for rep in range(replication_factor):
            order = np.random.permutation(len(b))
            null[rep] = self.statistic(a, b[np.ix_(order, order)])
        p = (1 + np.sum(null >= observed)) / (1 + replication_factor)
        return float(p), {"statistic": float(observed), "null": null}
