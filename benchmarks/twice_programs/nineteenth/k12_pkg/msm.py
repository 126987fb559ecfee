"""Clustering and Markov state models."""
import numpy as np


def cluster(sequences, n_states, seed, n_iter=15):
    """Lloyd's algorithm from randomly chosen frames."""
    rng = np.random.default_rng(seed)
    points = np.concatenate(sequences)
    centers = points[rng.choice(len(points), n_states, replace=False)].copy()
    for _ in range(n_iter):
        labels = assign(points, centers)
        for k in range(n_states):
            if (labels == k).any():
                centers[k] = points[labels == k].mean(axis=0)
    return [assign(s, centers) for s in sequences], centers


def assign(points, centers):
    return ((points[:, None, :] - centers[None]) ** 2).sum(axis=2).argmin(axis=1)


class MarkovStateModel:
    def __init__(self, n_states, lag, prior=0.01):
        self.n_states = n_states
        self.lag = lag
        self.prior = prior

    def fit(self, labels):
        counts = np.full((self.n_states, self.n_states), self.prior)
        for sequence in labels:
            np.add.at(counts, (sequence[:-self.lag], sequence[self.lag:]), 1.0)
        counts = counts + counts.T
        self.populations = counts.sum(axis=1) / counts.sum()
        root = np.sqrt(self.populations)
        transition = counts / counts.sum(axis=1, keepdims=True)
        symmetric = root[:, None] * transition / root[None, :]
        self.eigenvalues = np.sort(np.linalg.eigvalsh((symmetric + symmetric.T) / 2))[::-1]
        return self

    def timescales(self, count):
        return -self.lag / np.log(self.eigenvalues[1:count + 1])

    def score(self, count):
        return self.eigenvalues[:count].sum()
