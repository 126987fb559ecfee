"""Graph container in compressed row form and a stochastic block generator."""
from dataclasses import dataclass

import numpy as np
import torch


@dataclass
class Graph:
    indptr: np.ndarray
    indices: np.ndarray
    x: torch.Tensor
    y: torch.Tensor
    train_ids: np.ndarray
    val_ids: np.ndarray
    test_ids: np.ndarray

    @property
    def n(self):
        return len(self.indptr) - 1

    def neighbors(self, node):
        return self.indices[self.indptr[node]:self.indptr[node + 1]]


def make_citation_graph(n, classes, features, seed, degree=14, mixing=0.25):
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    members = [np.flatnonzero(y == c) for c in range(classes)]
    src, dst = [], []
    for node in range(n):
        for _ in range(int(rng.poisson(degree / 2)) + 1):
            pool = members[int(rng.integers(classes))] if rng.random() < mixing else members[y[node]]
            other = int(pool[rng.integers(len(pool))])
            if other != node:
                src += [node, other]
                dst += [other, node]
    edges = np.unique(np.stack([src, dst], axis=1), axis=0)
    indptr = np.zeros(n + 1, dtype=np.int64)
    np.add.at(indptr, edges[:, 0] + 1, 1)
    indptr = np.cumsum(indptr)
    centers = rng.normal(0, 0.35, size=(classes, features))
    x = centers[y] + rng.normal(0, 1.0, size=(n, features))
    order = rng.permutation(n)
    a, b = int(0.5 * n), int(0.7 * n)
    return Graph(indptr, edges[:, 1].astype(np.int64), torch.from_numpy(x.astype(np.float32)),
                 torch.from_numpy(y), order[:a], order[a:b], order[b:])
