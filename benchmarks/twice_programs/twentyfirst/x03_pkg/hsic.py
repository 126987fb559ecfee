"""Hilbert-Schmidt independence criterion with the median heuristic."""
import numpy as np

from .abstract import IndependenceTest


def gaussian(d):
    width = np.median(d[np.triu_indices(len(d), 1)])
    return np.exp(-(d ** 2) / (2 * width ** 2))


class HSIC(IndependenceTest):
    name = "hsic"

    def prepare(self, x, y):
        a, b = super().prepare(x, y)
        n = len(a)
        h = np.eye(n) - 1.0 / n
        return h @ gaussian(a) @ h, gaussian(b)

    def statistic(self, a, b):
        return np.sum(a * b) / (len(a) - 1) ** 2
