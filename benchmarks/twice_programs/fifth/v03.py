"""https://github.com/numba/numba/issues/6002: np.random inside a compiled function is a generator of its own; np.random.seed outside does not reach it."""

import numpy as np
from numba import njit


@njit
def walk(starts, indptr, indices, length):
    out = np.empty((len(starts), length), dtype=np.int64)
    for i in range(len(starts)):
        node = starts[i]
        for j in range(length):
            out[i, j] = node
            begin, end = indptr[node], indptr[node + 1]
            node = indices[begin + np.random.randint(end - begin)]
    return out


def ring(n, extra):
    rng = np.random.default_rng(0)
    links = [sorted({(i - 1) % n, (i + 1) % n, *rng.integers(0, n, extra).tolist()}) for i in range(n)]
    indptr = np.cumsum([0, *map(len, links)])
    return indptr, np.concatenate([np.array(each) for each in links])


def embed(walks, n, dim, window):
    counts = np.zeros((n, n))
    for row in walks:
        for i, node in enumerate(row):
            for other in row[max(0, i - window) : i]:
                counts[node, other] += 1
                counts[other, node] += 1
    u, s, _ = np.linalg.svd(np.log1p(counts))
    return u[:, :dim] * np.sqrt(s[:dim])


def main():
    np.random.seed(11)
    n = 40
    indptr, indices = ring(n, 2)
    walks = walk(np.arange(n).repeat(4), indptr, indices, 12)  # cause
    vectors = embed(walks, n, 8, 3)
    order = np.random.permutation(n)
    train, test = order[:30], order[30:]
    weights, *_ = np.linalg.lstsq(vectors[train], np.sin(train / 5), rcond=None)
    error = np.square(vectors[test] @ weights - np.sin(test / 5)).mean()
    np.save("vectors.npy", vectors)
    print("link prediction error:", error)


main()
