"""Permutation test over time points."""
import logging
import time
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed

from .decoding import cross_val_auc

log = logging.getLogger(__name__)


def unique_permutation(y):
    """A relabelling of y which is not y itself."""
    while True:
        perm = np.random.permutation(y)  # cause
        if not np.array_equal(perm, y):
            return perm


def permuted_score(X, y, times):
    yp = unique_permutation(y)
    return [cross_val_auc(X[:, :, t], yp) for t in times]


@dataclass
class PermutationResult:
    times: list
    observed: np.ndarray
    null: np.ndarray

    @property
    def p_values(self):
        hits = (self.null >= self.observed[None, :]).sum(axis=0)
        return (hits + 1) / (len(self.null) + 1)

    @property
    def p_max(self):
        peak = self.null.max(axis=1)
        return np.array([(np.sum(peak >= o) + 1) / (len(peak) + 1) for o in self.observed])

    def threshold(self, alpha=0.05):
        return float(np.quantile(self.null.max(axis=1), 1 - alpha))


class PermutationTest:
    def __init__(self, n_permutations, n_jobs, backend="loky"):
        self.n_permutations = n_permutations
        self.n_jobs = n_jobs
        self.backend = backend

    def run(self, X, y, times):
        observed = np.array([cross_val_auc(X[:, :, t], y) for t in times])
        t0 = time.time()
        jobs = (delayed(permuted_score)(X, y, times) for _ in range(self.n_permutations))
        null = Parallel(n_jobs=self.n_jobs, backend=self.backend)(jobs)  # cause
        log.info("%d permutations in %.1fs", self.n_permutations, time.time() - t0)
        return PermutationResult(list(times), observed, np.array(null))
