"""Compiled loops over a graph in CSR form."""
import numpy as np
from numba import njit


@njit
def walk_many(indptr, indices, per_node, length, restart):
    n = len(indptr) - 1
    paths = np.full((n * per_node, length), -1, dtype=np.int64)
    for start in range(n):
        for w in range(per_node):
            row = start * per_node + w
            here = start
            for t in range(length):
                paths[row, t] = here
                degree = indptr[here + 1] - indptr[here]
                if degree == 0:
                    break
                u = np.random.random()  # cause
                if u < restart:
                    here = start
                else:
                    k = int((u - restart) / (1 - restart) * degree)
                    here = indices[indptr[here] + min(k, degree - 1)]
    return paths


@njit
def cooccurrence(paths, n, window):
    counts = np.zeros((n, n), dtype=np.float64)
    rows, length = paths.shape
    for r in range(rows):
        for i in range(length):
            a = paths[r, i]
            if a < 0:
                break
            for j in range(max(0, i - window), i):
                b = paths[r, j]
                counts[a, b] += 1.0
                counts[b, a] += 1.0
    return counts
