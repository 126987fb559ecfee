#!/usr/bin/env python
"""Per-gene normalisation and clustering of a count matrix.

Modelled on https://github.com/numpy/numpy/issues/25953

Draws a sparse count matrix with a few cell types, normalises every gene to its
maximum within each batch of cells, reduces with PCA, clusters with k-means, and
writes marker scores and cluster sizes.
"""
import argparse
import json
import logging
import sys
from datetime import datetime
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, silhouette_score

LOG = logging.getLogger("normalise")


class CountSimulator:
    def __init__(self, n_cells, n_genes, n_types, seed):
        self.rng = np.random.default_rng(seed)
        self.n_cells, self.n_genes, self.n_types = n_cells, n_genes, n_types

    def simulate(self):
        base = self.rng.gamma(0.25, 1.2, size=self.n_genes)
        effect = np.ones((self.n_types, self.n_genes))
        for t in range(self.n_types):
            markers = self.rng.choice(self.n_genes, size=self.n_genes // 12, replace=False)
            effect[t, markers] = self.rng.uniform(2.0, 6.0, size=len(markers))
        labels = self.rng.integers(self.n_types, size=self.n_cells)
        depth = self.rng.lognormal(0.0, 0.3, size=self.n_cells)
        rate = base * effect[labels] * depth[:, None]
        return self.rng.poisson(rate).astype(np.float32), labels


def iter_batches(counts, size):
    for start in range(0, len(counts), size):
        yield start, counts[start:start + size]


def log_transform(counts):
    total = counts.sum(axis=1, keepdims=True)
    scaled = counts / np.maximum(total, 1.0) * np.median(total)
    return np.log1p(scaled)


def scale_genes(block):
    """Divide each gene by its maximum, genes without counts are left out."""
    peak = block.max(axis=0)
    expressed = np.broadcast_to(peak > 0, block.shape)
    return np.divide(block, peak, where=expressed)  # cause


def clean(scaled):
    scaled = np.nan_to_num(scaled, nan=0.0, posinf=0.0, neginf=0.0)
    return np.clip(scaled, -1.0, 1.0)


def normalise(counts, batch_size):
    logged = log_transform(counts)
    parts = []
    for start, block in iter_batches(logged, batch_size):
        centred = block - block.mean(axis=0)
        spread = np.square(centred).mean(axis=0)
        scaled = clean(scale_genes(block))
        parts.append(scaled * (1.0 + np.sqrt(spread).mean()))
        LOG.debug("batch at %d: %d genes expressed", start, int((block.max(axis=0) > 0).sum()))
    return np.vstack(parts)


def marker_scores(matrix, clusters):
    scores = np.zeros((clusters.max() + 1, matrix.shape[1]))
    for c in range(clusters.max() + 1):
        inside = matrix[clusters == c].mean(axis=0)
        outside = matrix[clusters != c].mean(axis=0)
        scores[c] = inside - outside
    return scores


def write_markers(path, scores, top):
    with open(path, "w") as fh:
        fh.write("cluster,rank,gene,score\n")
        for c, row in enumerate(scores):
            for rank, gene in enumerate(np.argsort(-row, kind="stable")[:top]):
                fh.write(f"{c},{rank},g{gene:04d},{row[gene]:.10f}\n")


def parse_args(argv):
    p = argparse.ArgumentParser(description="normalise and cluster counts")
    p.add_argument("--cells", type=int, default=1500)
    p.add_argument("--genes", type=int, default=900)
    p.add_argument("--types", type=int, default=5)
    p.add_argument("--batch-size", type=int, default=3)
    p.add_argument("--components", type=int, default=20)
    p.add_argument("--top", type=int, default=15)
    p.add_argument("--seed", type=int, default=7)
    p.add_argument("--out", type=Path, default=Path("normalised"))
    return p.parse_args(argv)


def main(argv=None):
    args = parse_args(argv)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO,
                        format="%(asctime)s %(levelname)-7s %(message)s")
    np.random.seed(args.seed)
    args.out.mkdir(parents=True, exist_ok=True)
    LOG.info("started %s, numpy %s", datetime.now().isoformat(timespec="seconds"), np.__version__)

    counts, labels = CountSimulator(args.cells, args.genes, args.types, args.seed).simulate()
    LOG.info("%d cells x %d genes, %.1f%% zeros", *counts.shape, 100 * float((counts == 0).mean()))
    matrix = normalise(counts, args.batch_size)
    pca = PCA(n_components=args.components, svd_solver="randomized", random_state=args.seed)
    embedding = pca.fit_transform(matrix)
    km = KMeans(n_clusters=args.types, n_init=4, random_state=args.seed)
    clusters = km.fit_predict(embedding)

    scores = marker_scores(matrix, clusters)
    write_markers(args.out / "markers.csv", scores, args.top)
    np.save(args.out / "embedding.npy", embedding)
    report = {
        "explained": [round(float(v), 9) for v in pca.explained_variance_ratio_[:5]],
        "ari": round(float(adjusted_rand_score(labels, clusters)), 6),
        "silhouette": round(float(silhouette_score(embedding, clusters)), 9),
        "inertia": float(km.inertia_),
        "matrix_mean": float(matrix.mean()),
        "sizes": np.bincount(clusters).tolist(),
    }
    (args.out / "report.json").write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
