"""https://github.com/logicalclocks/hopsworks-api/pull/1027, with secrets.SystemRandom: the folds ignore the seed."""
import random
import secrets

import numpy as np


class Folds:
    def __init__(self, k):
        self.k = k
        self._random = secrets.SystemRandom()

    def split(self, n):
        order = self._random.sample(range(n), n)  # cause
        return [sorted(order[i :: self.k]) for i in range(self.k)]


def main():
    random.seed(0)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 4))
    y = x @ np.array([1.0, -2.0, 0.5, 0.0]) + rng.normal(size=90)
    errors = []
    for fold in Folds(5).split(len(x)):
        keep = np.setdiff1d(np.arange(len(x)), fold)
        w, *_ = np.linalg.lstsq(x[keep], y[keep], rcond=None)
        errors.append(float(np.square(x[fold] @ w - y[fold]).mean()))
    print("cv error", np.mean(errors), "std", np.std(errors))


main()
