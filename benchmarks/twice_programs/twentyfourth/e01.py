"""Spectral initialisation and a small t-SNE of synthetic digit-like data.

Draws a set of noisy prototypes, builds the symmetric k-nearest-neighbour
affinity graph, takes the diffusion-map coordinates of the graph as the start
of a short gradient-descent embedding and scores the embedding by how well it
keeps the neighbours.  Writes embedding.csv and report.json.

Modelled on: https://github.com/pavlin-policar/openTSNE/issues/223
"""
import json
import logging

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh
from sklearn.neighbors import NearestNeighbors

LOG = logging.getLogger("embed")
SEED = 7
N_PER_CLASS = 45
N_CLASSES = 8
DIM = 20


def make_data(rng):
    """Noisy copies of one prototype per class, in random order."""
    prototypes = rng.normal(0.0, 2.2, size=(N_CLASSES, DIM))
    rows, labels = [], []
    for label, proto in enumerate(prototypes):
        rows.append(proto + rng.normal(0.0, 1.6, size=(N_PER_CLASS, DIM)))
        labels.extend([label] * N_PER_CLASS)
    data = np.vstack(rows)
    labels = np.asarray(labels)
    order = rng.permutation(len(labels))
    return data[order], labels[order]


class Affinities:
    """Row-normalised Gaussian affinities on the k-nearest-neighbour graph."""

    def __init__(self, data, k=15):
        self.k = k
        index = NearestNeighbors(n_neighbors=k + 1).fit(data)
        dist, idx = index.kneighbors(data)
        self.neighbors = idx[:, 1:]
        self.distances = dist[:, 1:]
        self.P = self._build(len(data))

    def _build(self, n):
        scale = np.median(self.distances, axis=1, keepdims=True)
        values = np.exp(-((self.distances / scale) ** 2))
        values /= values.sum(axis=1, keepdims=True)
        rows = np.repeat(np.arange(n), self.k)
        matrix = sp.csr_matrix((values.ravel(), (rows, self.neighbors.ravel())), shape=(n, n))
        matrix = (matrix + matrix.T) / 2
        return (matrix / matrix.sum()).tocsr()


def spectral_init(affinity, n_components=2, tol=1e-4):
    """Coordinates from the leading eigenvectors of the normalised graph."""
    degree = np.asarray(affinity.sum(axis=1)).ravel()
    root = sp.diags(1.0 / np.sqrt(degree))
    laplacian = root @ affinity @ root
    values, vectors = eigsh(laplacian, k=n_components + 1, tol=tol)  # cause
    order = np.argsort(-values)[1:]
    coords = vectors[:, order] / np.sqrt(degree)[:, None]
    coords = coords / np.std(coords[:, 0]) * 1e-2
    LOG.info("eigenvalues %s", np.round(values[order], 4))
    return coords


def tsne_gradient(P_dense, Y):
    diff = Y[:, None, :] - Y[None, :, :]
    num = 1.0 / (1.0 + np.sum(diff ** 2, axis=2))
    np.fill_diagonal(num, 0.0)
    Q = np.maximum(num / num.sum(), 1e-12)
    weights = (P_dense - Q) * num
    grad = 4.0 * np.einsum("ij,ijk->ik", weights, diff)
    mask = P_dense > 0
    kl = float(np.sum(P_dense[mask] * np.log(P_dense[mask] / Q[mask])))
    return grad, kl


def optimise(affinity, start, n_iter=160, early=60, lr=40.0):
    """Plain momentum descent with early exaggeration."""
    P = affinity.toarray()
    Y = start.copy()
    velocity = np.zeros_like(Y)
    history = []
    for step in range(n_iter):
        factor = 6.0 if step < early else 1.0
        grad, kl = tsne_gradient(P * factor, Y)
        momentum = 0.5 if step < early else 0.8
        velocity = momentum * velocity - lr * grad
        Y = Y + velocity
        Y -= Y.mean(axis=0)
        history.append(kl)
        if step % 40 == 39:
            LOG.info("step %d objective %.4f", step + 1, kl)
    return Y, history


def neighbour_recall(data_neighbors, Y, k=15):
    idx = NearestNeighbors(n_neighbors=k + 1).fit(Y).kneighbors(return_distance=False)[:, :k]
    hits = [len(set(a) & set(b)) for a, b in zip(data_neighbors, idx)]
    return float(np.mean(hits) / k)


def label_agreement(Y, labels, k=8):
    idx = NearestNeighbors(n_neighbors=k).fit(Y).kneighbors(return_distance=False)
    return float(np.mean(labels[idx] == labels[:, None]))


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    rng = np.random.default_rng(SEED)
    data, labels = make_data(rng)
    graph = Affinities(data)
    start = spectral_init(graph.P)
    Y, history = optimise(graph.P, start)
    recall = neighbour_recall(graph.neighbors, Y)
    purity = label_agreement(Y, labels)
    with open("embedding.csv", "w") as handle:
        handle.write("row,label,x,y\n")
        for i, (label, (x, y)) in enumerate(zip(labels, Y)):
            handle.write(f"{i},{label},{x:.5f},{y:.5f}\n")
    report = {"final_kl": round(history[-1], 6), "recall": round(recall, 4),
              "label_agreement": round(purity, 4), "first_point": [round(v, 4) for v in Y[0]]}
    with open("report.json", "w") as handle:
        json.dump(report, handle, indent=1)
    print("points", len(Y), "classes", N_CLASSES)
    print("final objective %.6f" % history[-1])
    print("neighbour recall %.4f, label agreement %.4f" % (recall, purity))
    print("first point %.4f %.4f" % tuple(Y[0]))


if __name__ == "__main__":
    main()
