"""Community detection on a stochastic block graph by spectral embedding.

Modelled on https://github.com/scipy/scipy/issues/12494
The eigenvectors and eigenvalues of a graph Laplacian came out differently at each execution.
"""
import argparse
import json
import logging
import time
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import sparse as sp
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import StratifiedKFold, cross_val_score

log = logging.getLogger("spectral")


@dataclass
class Config:
    blocks: int = 5
    nodes: int = 400
    p_in: float = 0.12
    p_out: float = 0.02
    dims: int = 8
    tol: float = 1e-3
    seed: int = 0


def block_graph(cfg):
    """Symmetric adjacency with planted communities."""
    rng = np.random.RandomState(cfg.seed)
    member = np.sort(rng.randint(0, cfg.blocks, cfg.nodes))
    same = member[:, None] == member[None, :]
    prob = np.where(same, cfg.p_in, cfg.p_out)
    upper = np.triu(rng.rand(cfg.nodes, cfg.nodes) < prob, 1)
    A = sp.csr_matrix((upper | upper.T).astype(float))
    return A, member


def drop_isolated(A, member):
    keep = np.flatnonzero(np.asarray(A.sum(axis=1)).ravel() > 0)
    return A[keep][:, keep], member[keep]


def normalised_laplacian(A):
    deg = np.asarray(A.sum(axis=1)).ravel()
    D = sp.diags(1.0 / np.sqrt(deg))
    return sp.eye(A.shape[0]) - D @ A @ D, deg


def embed(L, deg, cfg):
    """Rows of the smallest non-trivial eigenvectors, scaled by degree."""
    shifted = 2 * sp.eye(L.shape[0]) - L
    values, vectors = eigsh(shifted, k=cfg.dims + 1, which="LA", tol=cfg.tol)  # cause
    order = np.argsort(-values)
    values = 2 - values[order][1:]
    coords = vectors[:, order][:, 1:] / np.sqrt(deg)[:, None]
    return values, coords / np.linalg.norm(coords, axis=0)


def communities(coords, cfg):
    unit = coords[:, : cfg.blocks - 1]
    unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
    return KMeans(cfg.blocks, n_init=4, random_state=cfg.seed).fit_predict(unit)


def modularity(A, labels):
    deg = np.asarray(A.sum(axis=1)).ravel()
    two_m = deg.sum()
    score = 0.0
    for c in np.unique(labels):
        idx = np.flatnonzero(labels == c)
        score += A[idx][:, idx].sum() / two_m - (deg[idx].sum() / two_m) ** 2
    return float(score)


def relabel(labels):
    """Number the clusters in order of first appearance."""
    seen = {}
    return np.array([seen.setdefault(c, len(seen)) for c in labels])


def downstream(coords, member, cfg):
    """How well the embedding predicts the planted block."""
    folds = StratifiedKFold(4, shuffle=True, random_state=cfg.seed)
    clf = LogisticRegression(C=10.0, max_iter=300)
    return cross_val_score(clf, coords * np.sqrt(len(coords)), member, cv=folds)


def cut_table(A, labels):
    k = labels.max() + 1
    table = np.zeros((k, k), dtype=int)
    coo = A.tocoo()
    np.add.at(table, (labels[coo.row], labels[coo.col]), 1)
    return pd.DataFrame(table, index=[f"c{i}" for i in range(k)],
                        columns=[f"c{i}" for i in range(k)])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--nodes", type=int, default=Config.nodes)
    ap.add_argument("--dims", type=int, default=Config.dims)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    cfg = Config(nodes=args.nodes, dims=args.dims)
    np.random.seed(cfg.seed)

    A, member = drop_isolated(*block_graph(cfg))
    log.info("graph with %d nodes, %d edges", A.shape[0], A.nnz // 2)
    t0 = time.perf_counter()
    L, deg = normalised_laplacian(A)
    values, coords = embed(L, deg, cfg)
    log.info("embedding took %.3fs", time.perf_counter() - t0)

    labels = relabel(communities(coords, cfg))
    scores = downstream(coords, member, cfg)
    print("eigenvalues", " ".join(f"{v:.8f}" for v in values))
    print("first node ", " ".join(f"{v:+.6f}" for v in coords[0]))
    print(f"adjusted rand {adjusted_rand_score(member, labels):.4f}")
    print(f"modularity {modularity(A, labels):.6f}")
    print(f"downstream accuracy {scores.mean():.4f} +- {scores.std():.4f}")
    print(cut_table(A, labels).to_string())

    frame = pd.DataFrame(coords, columns=[f"v{i}" for i in range(coords.shape[1])])
    frame.insert(0, "cluster", labels)
    frame.insert(0, "block", member)
    frame.to_csv("embedding.csv", index_label="node", float_format="%.8f")
    with open("summary.json", "w") as fh:
        json.dump({"eigenvalues": [round(float(v), 10) for v in values],
                   "accuracy": scores.round(5).tolist()}, fh, indent=1)


if __name__ == "__main__":
    main()
