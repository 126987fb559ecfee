"""Integration of single-cell batches by iterative soft clustering.

Simulates counts of three donors with batch effects, normalises them, reduces
them to principal components and removes the batch effect with rounds of soft
k-means and per-cluster linear correction.  Writes the corrected components,
cluster sizes and mixing scores.

Modelled on: https://github.com/slowkow/harmonypy/issues/24
"""
import json
import logging

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors

logger = logging.getLogger("harmony")

SEED = 24
N_GENES = 200
N_TYPES = 6
CELLS_PER_DONOR = 350
DONORS = ["d1", "d2", "d3"]


def simulate_counts(seed=SEED):
    """Counts and metadata of all donors."""
    rng = np.random.default_rng(seed)
    profiles = rng.gamma(0.6, 2.0, size=(N_TYPES, N_GENES))
    counts, meta = [], []
    for donor in DONORS:
        shift = np.exp(rng.normal(0, 0.45, size=N_GENES))
        mix = rng.dirichlet(np.full(N_TYPES, 4.0))
        types = rng.choice(N_TYPES, size=CELLS_PER_DONOR, p=mix)
        depth = rng.lognormal(0.0, 0.3, size=CELLS_PER_DONOR)
        rate = profiles[types] * shift * depth[:, None]
        counts.append(rng.poisson(rate))
        meta.extend({"donor": donor, "cell_type": int(t)} for t in types)
    return np.vstack(counts), pd.DataFrame(meta)


def normalise(counts, target=400.0):
    total = counts.sum(axis=1, keepdims=True)
    return np.log1p(counts / np.maximum(total, 1) * target)


def principal_components(matrix, k=15):
    centred = matrix - matrix.mean(axis=0)
    u, s, vt = np.linalg.svd(centred, full_matrices=False)
    signs = np.sign(vt[np.arange(k), np.argmax(np.abs(vt[:k]), axis=1)])
    return u[:, :k] * s[:k] * signs


class Harmony:
    """Soft clustering on the unit sphere with a diversity penalty."""

    def __init__(self, Z, batch, nclust=20, theta=2.0, sigma=0.1, lamb=1.0, max_iter=5):
        self.Z_orig = Z
        self.nclust = nclust
        self.theta, self.sigma, self.lamb = theta, sigma, lamb
        self.max_iter = max_iter
        self.phi = pd.get_dummies(batch).to_numpy(dtype=float)
        self.share = self.phi.mean(axis=0)
        self.Z_corr = Z.copy()
        self.history = []
        self.init_cluster()

    @staticmethod
    def unit(matrix):
        return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)

    def init_cluster(self):
        self.Z_cos = self.unit(self.Z_orig)
        model = KMeans(n_clusters=self.nclust, init="k-means++", n_init=2, max_iter=25)  # cause
        model.fit(self.Z_cos)
        self.Y = self.unit(model.cluster_centers_)
        self.R = self.soft_assign()

    def soft_assign(self, penalty=None):
        dist = 2.0 * (1.0 - self.Z_cos @ self.Y.T)
        logits = -dist / self.sigma
        if penalty is not None:
            logits = logits + penalty
        logits -= logits.max(axis=1, keepdims=True)
        R = np.exp(logits)
        return R / R.sum(axis=1, keepdims=True)

    def cluster(self, rounds=8):
        for _ in range(rounds):
            self.Y = self.unit(self.R.T @ self.Z_cos)
            observed = self.R.T @ self.phi
            expected = self.R.sum(axis=0)[:, None] * self.share
            ratio = np.log((expected + 1) / (observed + 1)) * self.theta
            self.R = self.soft_assign(self.phi @ ratio.T)

    def correct(self):
        """Ridge regression of the components on the batch, per cluster."""
        design = np.hstack([np.ones((len(self.phi), 1)), self.phi])
        ridge = np.diag([0.0] + [self.lamb] * self.phi.shape[1])
        self.Z_corr = self.Z_orig.copy()
        for k in range(self.nclust):
            weighted = design * self.R[:, [k]]
            beta = np.linalg.solve(weighted.T @ design + ridge + 1e-9 * np.eye(len(ridge)), weighted.T @ self.Z_orig)
            beta[0] = 0.0
            self.Z_corr -= weighted @ beta
        self.Z_cos = self.unit(self.Z_corr)

    def objective(self):
        dist = 2.0 * (1.0 - self.Z_cos @ self.Y.T)
        entropy = np.sum(self.R * np.log(np.maximum(self.R, 1e-12)))
        return float(np.sum(self.R * dist) + self.sigma * entropy)

    def run(self):
        for i in range(self.max_iter):
            self.cluster()
            self.correct()
            self.history.append(self.objective())
            logger.info("round %d objective %.4f", i + 1, self.history[-1])
        return self.Z_corr


def mixing(Z, labels, k=20):
    idx = NearestNeighbors(n_neighbors=k).fit(Z).kneighbors(return_distance=False)
    labels = np.asarray(labels)
    return float(np.mean(labels[idx] != labels[:, None]))


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s - %(name)s - %(message)s")
    counts, meta = simulate_counts()
    Z = principal_components(normalise(counts))
    before = mixing(Z, meta["donor"])
    harmony = Harmony(Z, meta["donor"])
    corrected = harmony.run()
    after = mixing(corrected, meta["donor"])
    type_error = mixing(corrected, meta["cell_type"])
    table = pd.DataFrame(np.round(corrected, 5), columns=["PC%d" % (i + 1) for i in range(corrected.shape[1])])
    pd.concat([meta, table], axis=1).to_csv("corrected.csv", index=False)
    sizes = np.bincount(harmony.R.argmax(axis=1), minlength=harmony.nclust)
    with open("summary.json", "w") as handle:
        json.dump({"objective": harmony.history, "cluster_sizes": sizes.tolist()}, handle, indent=1)
    print("cells %d genes %d" % counts.shape)
    print("donor mixing before %.4f after %.4f" % (before, after))
    print("neighbours of another type %.4f" % type_error)
    print("final objective %.5f" % harmony.history[-1])
    print("cluster sizes", " ".join(map(str, sizes)))


if __name__ == "__main__":
    main()
