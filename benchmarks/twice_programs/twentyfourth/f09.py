"""Vibration modes of a drum with a hole.

Discretises the Laplace operator on a square membrane with a round hole,
computes the lowest modes, projects an initial pluck on them, and follows the
motion of a few microphones in time.

Modelled on: https://github.com/scipy/scipy/issues/9023
"""
import json
import logging
import time

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

log = logging.getLogger("drum")


class Membrane:
    """Grid of the inner points of the membrane."""

    def __init__(self, n=130, hole=0.18):
        self.n = n
        self.h = 1.0 / (n + 1)
        grid = (np.arange(n) + 1) * self.h
        self.x, self.y = np.meshgrid(grid, grid, indexing="ij")
        self.inside = (self.x - 0.5) ** 2 + (self.y - 0.5) ** 2 > hole ** 2
        self.index = -np.ones((n, n), dtype=int)
        self.index[self.inside] = np.arange(self.inside.sum())

    @property
    def size(self):
        return int(self.inside.sum())

    def stiffness(self):
        rows, cols, vals = [], [], []
        for i, j in zip(*np.nonzero(self.inside)):
            me = self.index[i, j]
            rows.append(me)
            cols.append(me)
            vals.append(4.0)
            for a, b in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
                if 0 <= a < self.n and 0 <= b < self.n and self.inside[a, b]:
                    rows.append(me)
                    cols.append(self.index[a, b])
                    vals.append(-1.0)
        matrix = sp.csr_matrix((vals, (rows, cols)), shape=(self.size, self.size))
        return matrix / self.h ** 2

    def values(self, function):
        return function(self.x[self.inside], self.y[self.inside])

    def nearest(self, px, py):
        d = (self.x - px) ** 2 + (self.y - py) ** 2
        d[~self.inside] = np.inf
        return int(self.index[np.unravel_index(np.argmin(d), d.shape)])


def lowest_modes(matrix, count):
    """Eigenvalues in rising order and the modes as columns."""
    values, vectors = eigsh(matrix, k=count, sigma=0, which="LM", tol=1e-6)  # cause
    order = np.argsort(values)
    return values[order], vectors[:, order]


def pluck(x, y):
    return np.exp(-60 * ((x - 0.22) ** 2 + (y - 0.3) ** 2)) + 0.4 * np.exp(-90 * ((x - 0.8) ** 2 + (y - 0.7) ** 2))


def microphones(membrane, values, vectors, start, times):
    """Signal at three points for the given start shape."""
    amplitudes = vectors.T @ start
    spots = [membrane.nearest(px, py) for px, py in ((0.15, 0.15), (0.8, 0.3), (0.5, 0.85))]
    omega = np.sqrt(values)
    damp = np.exp(-0.05 * np.outer(times, omega))
    phase = np.cos(np.outer(times, omega)) * damp
    return (phase * amplitudes) @ vectors[spots].T, amplitudes


def nodal_domains(membrane, vector):
    """Number of sign changes along the grid rows, a cheap mode label."""
    field = np.zeros((membrane.n, membrane.n))
    field[membrane.inside] = np.sign(vector)
    return int((field[1:] * field[:-1] < 0).sum() + (field[:, 1:] * field[:, :-1] < 0).sum())


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    begin = time.perf_counter()
    membrane = Membrane()
    matrix = membrane.stiffness()
    log.info("membrane with %d points, %d entries", membrane.size, matrix.nnz)
    values, vectors = lowest_modes(matrix, 16)
    start = membrane.values(pluck)
    times = np.linspace(0, 4, 801)
    signal, amplitudes = microphones(membrane, values, vectors, start, times)
    for k, value in enumerate(values):
        print(f"mode {k:2d}: frequency {np.sqrt(value) / (2 * np.pi):8.4f} amplitude {amplitudes[k]:9.4f} "
              f"changes {nodal_domains(membrane, vectors[:, k])}")
    print("loudest microphone:", int(np.argmax((signal ** 2).sum(axis=0))))
    np.savetxt("signal.txt", signal, fmt="%.8f")
    np.savetxt("modes.txt", vectors[::17], fmt="%.6f")
    with open("spectrum.json", "w") as handle:
        json.dump([round(float(v), 6) for v in values], handle)
    log.info("%.2f s", time.perf_counter() - begin)


if __name__ == "__main__":
    main()
