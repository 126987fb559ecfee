"""Unbiased distance correlation."""
import numpy as np

from .abstract import IndependenceTest


def u_center(d):
    n = len(d)
    rows = d.sum(axis=1) / (n - 2)
    total = d.sum() / ((n - 1) * (n - 2))
    out = d - rows[:, None] - rows[None, :] + total
    np.fill_diagonal(out, 0.0)
    return out


class DCorr(IndependenceTest):
    name = "dcorr"

    def prepare(self, x, y):
        a, b = super().prepare(x, y)
        return u_center(a), u_center(b)

    def statistic(self, a, b):
        cov = np.sum(a * b)
        return cov / np.sqrt(np.sum(a * a) * np.sum(b * b))
