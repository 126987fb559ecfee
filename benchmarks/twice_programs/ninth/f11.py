"""Node embeddings from random walks on a block graph, then link classification.

Modelled on https://github.com/numba/numba/issues/7715
A user seeds the generator and compiled functions still give other numbers than plain ones.
"""
import argparse
import logging
import random
import time

import h5py
import networkx as nx
import numpy as np
from scipy.sparse.linalg import svds
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score

from f11_walks.engine import walk_many, cooccurrence

log = logging.getLogger("walks")


def make_graph(args):
    sizes = [args.nodes // args.blocks] * args.blocks
    p = np.full((args.blocks, args.blocks), args.p_out)
    np.fill_diagonal(p, args.p_in)
    g = nx.stochastic_block_model(sizes, p.tolist(), seed=args.seed)
    block = np.repeat(np.arange(args.blocks), sizes)
    return g, block


def to_csr(g):
    indptr, indices = [0], []
    for v in range(g.number_of_nodes()):
        nb = sorted(g[v])
        indices.extend(nb)
        indptr.append(len(indices))
    return np.array(indptr, dtype=np.int64), np.array(indices, dtype=np.int64)


def embed(counts, dim, seed):
    """Shifted positive pointwise mutual information, factorised."""
    total = counts.sum()
    row = counts.sum(1, keepdims=True)
    col = counts.sum(0, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        pmi = np.log(counts * total / (row @ col))
    pmi[~np.isfinite(pmi)] = 0
    pmi = np.maximum(pmi, 0)
    v0 = np.random.default_rng(seed).normal(size=len(pmi))
    u, s, _ = svds(pmi, k=dim, v0=v0)
    return u * np.sqrt(s)


def link_auc(z, g, rng):
    edges = np.array(sorted(tuple(sorted(e)) for e in g.edges()))
    pos = edges[rng.choice(len(edges), 800, replace=False)]
    neg = []
    while len(neg) < 800:
        a, b = (int(v) for v in rng.integers(0, len(z), 2))
        if a != b and not g.has_edge(a, b):
            neg.append((a, b))
    pairs = np.concatenate([pos, np.array(neg)])
    y = np.r_[np.ones(800), np.zeros(800)]
    return roc_auc_score(y, (z[pairs[:, 0]] * z[pairs[:, 1]]).sum(1))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--nodes", type=int, default=600)
    ap.add_argument("--blocks", type=int, default=6)
    ap.add_argument("--p-in", type=float, default=0.06)
    ap.add_argument("--p-out", type=float, default=0.012)
    ap.add_argument("--walks", type=int, default=12)
    ap.add_argument("--length", type=int, default=30)
    ap.add_argument("--window", type=int, default=4)
    ap.add_argument("--restart", type=float, default=0.05)
    ap.add_argument("--dim", type=int, default=16)
    ap.add_argument("--seed", type=int, default=31)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    random.seed(args.seed)
    np.random.seed(args.seed)

    g, block = make_graph(args)
    indptr, indices = to_csr(g)
    log.info("%d nodes %d edges", g.number_of_nodes(), g.number_of_edges())
    t0 = time.perf_counter()
    paths = walk_many(indptr, indices, args.walks, args.length, args.restart)
    counts = cooccurrence(paths, len(block), args.window)
    dt = time.perf_counter() - t0
    log.info("%d walks in %.2fs (%.0f/s, compilation counted)", len(paths), dt, len(paths) / dt)

    z = embed(counts, args.dim, args.seed)
    auc = link_auc(z, g, np.random.default_rng(args.seed))
    clf = LogisticRegression(max_iter=300)
    acc = cross_val_score(clf, z, block, cv=4)
    log.info("link auc %.8f block accuracy %.5f", auc, acc.mean())
    with h5py.File("embedding.h5", "w") as fh:
        fh.create_dataset("z", data=z.astype(np.float32))
        fh.attrs["auc"] = auc
        fh.attrs["accuracy"] = acc
    np.savetxt("scores.csv", [[auc, *acc]], delimiter=",", fmt="%.10f")


if __name__ == "__main__":
    main()
