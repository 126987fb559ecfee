"""Trains a k-means codebook and a nearest centroid classifier on synthetic patches.

The inner loops are compiled with numba; training prints the inertia of each
epoch, and the codebook is then used as features for a classifier.

Modelled on: https://github.com/numba/numba/issues/3681
"""
import time
import warnings

import numba as nb
import numpy as np
from numba.core.errors import NumbaPerformanceWarning

POINTS = 240000
DIM = 8
CLUSTERS = 24
EPOCHS = 25
CLASSES = 6

warnings.simplefilter("ignore", NumbaPerformanceWarning)


@nb.njit
def nearest(point, centers):
    best = 0
    best_d = np.inf
    for k in range(centers.shape[0]):
        d = 0.0
        for j in range(point.shape[0]):
            diff = point[j] - centers[k, j]
            d += diff * diff
        if d < best_d:
            best_d = d
            best = k
    return best, best_d


@nb.njit(parallel=True)
def assign(data, centers, labels, dist):
    for i in nb.prange(data.shape[0]):
        k, d = nearest(data[i], centers)
        labels[i] = k
        dist[i] = d


@nb.njit(parallel=True)
def epoch_pass(data, centers, dist, sums, counts):
    """Finds the cluster of every point and adds the point to its sum."""
    for i in nb.prange(data.shape[0]):  # cause
        k, d = nearest(data[i], centers)
        dist[i] = d
        counts[k] += 1
        for j in range(data.shape[1]):
            sums[k, j] += data[i, j]


class Codebook:
    def __init__(self, clusters, seed):
        self.clusters = clusters
        self.rng = np.random.default_rng(seed)
        self.centers = None

    def fit(self, data, epochs):
        start = self.rng.choice(len(data), self.clusters, replace=False)
        self.centers = data[np.sort(start)].copy()
        dist = np.zeros(len(data))
        for epoch in range(epochs):
            sums = np.zeros_like(self.centers)
            counts = np.zeros(self.clusters, dtype=np.int64)
            epoch_pass(data, self.centers, dist, sums, counts)
            inertia = float(dist.mean())
            filled = counts > 0
            self.centers[filled] = sums[filled] / counts[filled, None]
            if epoch % 5 == 0 or epoch == epochs - 1:
                print(f"epoch {epoch:2d}  inertia {inertia:.8f}  smallest cluster {counts.min()}"
                      f"  counted {counts.sum()}")
        return self

    def encode(self, data):
        labels = np.zeros(len(data), dtype=np.int64)
        dist = np.zeros(len(data))
        assign(data, self.centers, labels, dist)
        return labels, dist


def make_data(seed):
    rng = np.random.default_rng(seed)
    target = rng.integers(0, CLASSES, POINTS)
    modes = rng.normal(0, 2.2, (CLASSES, 4, DIM))
    mode = rng.integers(0, 4, POINTS)
    data = modes[target, mode] + rng.normal(0, 1.3, (POINTS, DIM))
    return data, target


def class_table(codes, target):
    table = np.zeros((CLUSTERS, CLASSES))
    np.add.at(table, (codes, target), 1.0)
    return (table + 1.0) / (table.sum(axis=1, keepdims=True) + CLASSES)


def report(name, codes, target, table):
    probability = table[codes]
    hit = probability.argmax(axis=1) == target
    loss = -np.log(probability[np.arange(len(target)), target]).mean()
    print(f"{name:6s} accuracy {hit.mean():.6f}  log loss {loss:.8f}")


def main():
    began = time.time()
    data, target = make_data(seed=9)
    cut = int(0.8 * POINTS)
    book = Codebook(CLUSTERS, seed=10).fit(data[:cut], EPOCHS)
    codes, dist = book.encode(data[:cut])
    table = class_table(codes, target[:cut])
    report("train", codes, target[:cut], table)
    codes, dist = book.encode(data[cut:])
    report("test", codes, target[cut:], table)
    print(f"mean distance on the test set {np.sqrt(dist).mean():.8f}")
    np.savetxt("codebook.txt", book.centers, fmt="%.8f")
    print(f"norm of the codebook {np.linalg.norm(book.centers):.8f}")
    print(f"time {time.time() - began:.1f} s")


if __name__ == "__main__":
    main()
