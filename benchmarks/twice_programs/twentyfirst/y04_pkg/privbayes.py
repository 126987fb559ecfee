"""Greedy network construction with noisy mutual information, noisy CPTs."""
import itertools
import logging
import random

import numpy as np
import pandas as pd

log = logging.getLogger("privbayes")


def mutual_information(a, b, na, nb):
    joint = np.bincount(a * nb + b, minlength=na * nb).reshape(na, nb) / len(a)
    pa, pb = joint.sum(1, keepdims=True), joint.sum(0, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = joint * np.log(joint / (pa * pb))
    return float(np.nansum(t))


class PrivBayes:
    def __init__(self, domain, epsilon, degree=2, seed=None):
        self.domain = domain
        self.columns = list(domain)
        self.epsilon = epsilon
        self.degree = degree
        self.seed = seed
        self.noise = np.random.default_rng(seed)
        self.sampler = random.Random()  # cause
        self.network, self.tables = [], {}

    # -- encoding ---------------------------------------------------------
    def _encode(self, df):
        return {c: df[c].map({v: i for i, v in enumerate(self.domain[c])}).to_numpy() for c in self.columns}

    def _size(self, cols):
        return int(np.prod([len(self.domain[c]) for c in cols])) if cols else 1

    def _key(self, data, cols, n):
        key = np.zeros(n, dtype=int)
        for c in cols:
            key = key * len(self.domain[c]) + data[c]
        return key

    # -- structure --------------------------------------------------------
    def _candidates(self, done, todo):
        for c in todo:
            k = min(self.degree, len(done))
            for parents in itertools.combinations(done, k):
                yield c, parents

    def fit(self, df):
        data, n = self._encode(df), len(df)
        eps = self.epsilon / 2
        scale = 2 * np.log(n) / (n * eps / len(self.columns))
        done, todo = [], list(self.columns)
        first = todo.pop(0)
        self.network = [(first, ())]
        done.append(first)
        while todo:
            scored = []
            for c, parents in self._candidates(done, todo):
                mi = mutual_information(self._key(data, parents, n), data[c], self._size(parents),
                                        len(self.domain[c]))
                scored.append((mi + self.noise.laplace(0, scale * 0.1), c, parents))
            _, c, parents = max(scored)
            self.network.append((c, parents))
            done.append(c)
            todo.remove(c)
        for c, parents in self.network:
            self.tables[c] = self._table(data, c, parents, n, eps)
        log.info("fitted %d tables", len(self.tables))
        return self

    def _table(self, data, c, parents, n, eps):
        k, m = self._size(parents), len(self.domain[c])
        counts = np.bincount(self._key(data, parents, n) * m + data[c], minlength=k * m).astype(float)
        counts += self.noise.laplace(0, 2 * len(self.columns) / eps, counts.shape)
        counts = counts.clip(min=0).reshape(k, m)
        empty = counts.sum(1) <= 0
        counts[empty] = 1.0
        return counts / counts.sum(1, keepdims=True)

    # -- sampling ---------------------------------------------------------
    def sample(self, size):
        cum = {c: [list(itertools.accumulate(row)) for row in t.tolist()] for c, t in self.tables.items()}
        values = {c: range(len(self.domain[c])) for c in self.columns}
        rows = []
        for _ in range(size):
            row = {}
            for c, parents in self.network:
                key = 0
                for p in parents:
                    key = key * len(self.domain[p]) + row[p]
                row[c] = self.sampler.choices(values[c], cum_weights=cum[c][key])[0]
            rows.append([self.domain[c][row[c]] for c in self.columns])
        return pd.DataFrame(rows, columns=self.columns)
