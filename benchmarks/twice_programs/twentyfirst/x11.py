"""DNA + protein single-cell panel: protein arm of the tutorial notebook.

Antibody counts are filtered and normalised, reduced with PCA, embedded in
two dimensions, clustered on the embedding graph and annotated with the most
specific markers. The results go to an HDF5 file and a table per cluster.

Modelled on: https://github.com/MissionBio/mosaic/issues/20
"""
import csv
import json
import logging
import time

import h5py
import numpy as np
from scipy.sparse import csr_matrix
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.manifold import SpectralEmbedding
from sklearn.metrics import silhouette_score
from sklearn.neighbors import NearestNeighbors

log = logging.getLogger("mosaic")

N_CELLS = 1400
N_PROTEINS = 260
COMPONENTS = 12
RANDOM_STATE = 42


def load_sample(seed=34):
    """Counts of an antibody panel with background binding and size factors."""
    rng = np.random.default_rng(seed)
    n_types = 8
    types = rng.integers(0, n_types, N_CELLS)
    profile = rng.gamma(0.5, 2.0, (n_types, N_PROTEINS))
    background = rng.gamma(2.0, 1.0, N_PROTEINS)
    mix = rng.uniform(0, 0.75, (N_CELLS, 1))
    mean = (1 - mix) * profile[types] + mix * profile[(types + 1) % n_types]
    mean = (mean + background) * rng.lognormal(0, 0.5, (N_CELLS, 1))
    counts = rng.poisson(mean)
    names = [f"CD{k + 1}" for k in range(N_PROTEINS)]
    barcodes = [f"cell-{k:05d}" for k in range(N_CELLS)]
    return Protein(counts, names, barcodes), types


class Protein:
    """The protein assay: layers over cells x antibodies, and row attributes."""

    def __init__(self, counts, names, barcodes):
        self.layers = {"read_counts": counts}
        self.names = names
        self.barcodes = barcodes
        self.row_attrs = {}

    def filter_antibodies(self, min_total):
        keep = self.layers["read_counts"].sum(axis=0) >= min_total
        self.layers = {k: v[:, keep] for k, v in self.layers.items()}
        self.names = [n for n, k in zip(self.names, keep) if k]
        return int(keep.sum())

    def normalize_reads(self, method="CLR", jitter=0.0):
        counts = self.layers["read_counts"].astype(float)
        logged = np.log1p(counts)
        if method == "CLR":
            norm = logged - logged.mean(axis=1, keepdims=True)
        elif method == "NSP":
            depth = counts.sum(axis=1, keepdims=True)
            norm = np.log1p(counts / depth * np.median(depth))
            norm = norm - np.quantile(norm, 0.2, axis=0)
        else:
            raise ValueError(method)
        self.layers["normalized_counts"] = norm

    def run_pca(self, attribute, components, random_state=None):
        """Store the leading components of a layer as row attribute 'pca'."""
        x = self.layers[attribute]
        solver = PCA(n_components=components, svd_solver="randomized",
                     iterated_power=1, random_state=random_state)
        scores = solver.fit_transform(x)
        self.row_attrs["pca"] = scores
        log.info("pca: %.2f%% of the variance",
                 100 * solver.explained_variance_ratio_.sum())
        return solver.explained_variance_ratio_

    def run_embedding(self, attribute, n_neighbors=20, random_state=None):
        x = self.row_attrs[attribute]
        nn = NearestNeighbors(n_neighbors=n_neighbors, algorithm="brute").fit(x)
        dist, idx = nn.kneighbors(x)
        scale = dist[:, -1:] + 1e-12
        weight = np.exp(-(dist / scale) ** 2)
        rows = np.repeat(np.arange(len(x)), n_neighbors)
        graph = csr_matrix((weight.ravel(), (rows, idx.ravel())),
                           shape=(len(x), len(x)))
        graph = 0.5 * (graph + graph.T)
        emb = SpectralEmbedding(n_components=5, affinity="precomputed",
                                eigen_solver="arpack",
                                random_state=random_state)
        self.row_attrs["embedding"] = emb.fit_transform(graph.toarray())

    def cluster(self, attribute, k, random_state=None):
        x = self.row_attrs[attribute]
        x = (x - x.mean(axis=0)) / x.std(axis=0)
        km = KMeans(n_clusters=k, n_init=4, random_state=random_state).fit(x)
        sizes = np.bincount(km.labels_, minlength=k)
        rank = np.empty(k, dtype=int)
        rank[np.argsort(-sizes, kind="stable")] = np.arange(k)
        self.row_attrs["label"] = rank[km.labels_]
        return float(km.inertia_)

    def signatures(self, layer, top=5):
        """Most specific antibodies of every cluster."""
        x, labels = self.layers[layer], self.row_attrs["label"]
        rows = []
        for lab in range(labels.max() + 1):
            inside = labels == lab
            a, b = x[inside], x[~inside]
            effect = (a.mean(axis=0) - b.mean(axis=0)) / np.sqrt(
                a.var(axis=0) / len(a) + b.var(axis=0) / len(b) + 1e-12)
            for j in np.argsort(-effect, kind="stable")[:top]:
                rows.append([lab, self.names[j], float(effect[j]),
                             float(a[:, j].mean())])
        return rows


def purity(types, labels):
    total = 0
    for lab in np.unique(labels):
        total += np.bincount(types[labels == lab]).max()
    return total / len(types)


def save(path, protein):
    with h5py.File(path, "w", track_order=False) as fh:
        fh.create_dataset("barcodes", data=np.array(protein.barcodes, dtype="S"))
        for key in ("pca", "embedding", "label"):
            fh.create_dataset(f"row_attrs/{key}", data=protein.row_attrs[key])


def main():
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s] %(message)s")
    t0 = time.time()
    protein, types = load_sample()
    kept = protein.filter_antibodies(min_total=2500)
    log.info("%d cells, %d antibodies kept", N_CELLS, kept)

    protein.normalize_reads("NSP")
    ratio = protein.run_pca("normalized_counts", components=COMPONENTS)  # cause
    protein.run_embedding("pca", random_state=RANDOM_STATE)
    inertia = protein.cluster("embedding", k=8, random_state=RANDOM_STATE)

    labels = protein.row_attrs["label"]
    report = {
        "antibodies": kept,
        "explained": [float(r) for r in ratio],
        "inertia": inertia,
        "purity": purity(types, labels),
        "silhouette": float(silhouette_score(protein.row_attrs["pca"], labels)),
        "sizes": np.bincount(labels).tolist(),
    }
    save("sample.protein.h5", protein)
    with open("signatures.csv", "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["cluster", "antibody", "effect", "mean"])
        w.writerows(protein.signatures("normalized_counts"))
    with open("report.json", "w") as fh:
        json.dump(report, fh, indent=1)
    print(f"purity {report['purity']:.5f} silhouette {report['silhouette']:.7f} "
          f"inertia {inertia:.6f}")
    print("sizes", report["sizes"])
    print("explained", " ".join(f"{r:.6f}" for r in ratio))
    log.info("took %.2f s", time.time() - t0)


if __name__ == "__main__":
    main()
