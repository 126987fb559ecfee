"""Nearest-neighbour search benchmark: recall against speed of three small index types (after ann-benchmarks)."""
import argparse
import json
import logging
import os
import platform
import resource
import time
from dataclasses import dataclass, field

import h5py
import numpy as np
import pandas as pd

logging.basicConfig(level=logging.INFO, format="%(asctime)s - annb - %(levelname)s - %(message)s")
logger = logging.getLogger("annb")


def make_dataset(n, n_queries, dim, seed):
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(40, dim)).astype(np.float32)
    pts = centers[rng.integers(0, 40, n + n_queries)] + 0.6 * rng.normal(size=(n + n_queries, dim)).astype(np.float32)
    pts /= np.linalg.norm(pts, axis=1, keepdims=True)
    return pts[:n], pts[n:]


def top_k(scores, k):
    idx = np.argpartition(-scores, k)[:k]
    return idx[np.argsort(-scores[idx], kind="stable")]


class BruteForce:
    name = "bruteforce"

    def fit(self, X):
        self.X = X

    def query(self, q, k):
        return top_k(self.X @ q, k)

    def set_query_arguments(self):
        pass

    def __str__(self):
        return "BruteForce()"


class IVF:
    name = "ivf"

    def __init__(self, n_list, seed=0, iters=8):
        self.n_list, self.seed, self.iters, self.n_probe = n_list, seed, iters, 1

    def fit(self, X):
        rng = np.random.default_rng(self.seed)
        C = X[rng.choice(len(X), self.n_list, replace=False)].copy()
        for _ in range(self.iters):
            assign = (X @ C.T).argmax(1)
            for c in range(self.n_list):
                members = X[assign == c]
                if len(members):
                    C[c] = members.mean(0)
            C /= np.linalg.norm(C, axis=1, keepdims=True)
        assign = (X @ C.T).argmax(1)
        self.C = C
        self.lists = [np.flatnonzero(assign == c) for c in range(self.n_list)]
        self.vectors = [X[l] for l in self.lists]

    def set_query_arguments(self, n_probe):
        self.n_probe = n_probe

    def query(self, q, k):
        probe = top_k(self.C @ q, self.n_probe)
        ids = np.concatenate([self.lists[c] for c in probe])
        scores = np.concatenate([self.vectors[c] @ q for c in probe])
        return ids[top_k(scores, k)] if len(ids) > k else ids[np.argsort(-scores, kind="stable")]

    def __str__(self):
        return f"IVF(n_list={self.n_list}, n_probe={self.n_probe})"


class RandomProjectionRerank:
    name = "rp-rerank"

    def __init__(self, n_bits, seed=0):
        self.n_bits, self.seed, self.n_candidates = n_bits, seed, 100

    def fit(self, X):
        rng = np.random.default_rng(self.seed)
        self.R = rng.normal(size=(X.shape[1], self.n_bits)).astype(np.float32)
        self.X, self.codes = X, np.packbits(X @ self.R > 0, axis=1)
        self.popcount = np.array([bin(i).count("1") for i in range(256)], dtype=np.int16)

    def set_query_arguments(self, n_candidates):
        self.n_candidates = n_candidates

    def query(self, q, k):
        code = np.packbits(q @ self.R > 0)
        ham = self.popcount[self.codes ^ code].sum(1)
        cand = np.argsort(ham, kind="stable")[: self.n_candidates]
        return cand[top_k(self.X[cand] @ q, k)]

    def __str__(self):
        return f"RPRerank(bits={self.n_bits}, cand={self.n_candidates})"


@dataclass
class Definition:
    constructor: type
    arguments: list = field(default_factory=list)
    query_argument_groups: list = field(default_factory=lambda: [[]])


DEFINITIONS = [
    Definition(BruteForce),
    Definition(IVF, [64], [[1], [4], [12]]),
    Definition(IVF, [128], [[4], [16]]),
    Definition(RandomProjectionRerank, [128], [[50], [200]]),
    Definition(RandomProjectionRerank, [256], [[100]]),
]


def rss_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_queries(algo, Q, k):
    neighbors, times = np.full((len(Q), k), -1, dtype=np.int64), np.zeros(len(Q))
    for i, q in enumerate(Q):
        t0 = time.perf_counter()
        ids = algo.query(q, k)
        times[i] = time.perf_counter() - t0
        neighbors[i, :len(ids)] = ids
    return neighbors, times


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--n", type=int, default=8000)
    ap.add_argument("--queries", type=int, default=200)
    ap.add_argument("--dim", type=int, default=48)
    ap.add_argument("-k", "--count", type=int, default=10)
    ap.add_argument("--runs", type=int, default=2)
    ap.add_argument("--seed", type=int, default=2025)
    ap.add_argument("--out", default="results")
    args = ap.parse_args()
    os.makedirs(args.out, exist_ok=True)
    X, Q = make_dataset(args.n, args.queries, args.dim, args.seed)
    logger.info("dataset: train %s, test %s, distance angular", X.shape, Q.shape)
    truth = np.stack([top_k(X @ q, args.count) for q in Q])
    rows = []
    for d in DEFINITIONS:
        algo = d.constructor(*d.arguments)
        before, t0 = rss_mb(), time.time()
        algo.fit(X)
        build_time = time.time() - t0
        logger.info("Built index %s in %.4f s, index size: %.1f MB", algo.name, build_time, rss_mb() - before)
        for pos, qargs in enumerate(d.query_argument_groups, 1):
            algo.set_query_arguments(*qargs)
            logger.info("Running query argument group %d of %d: %s", pos, len(d.query_argument_groups), algo)
            best = None
            for r in range(args.runs):
                neighbors, times = run_queries(algo, Q, args.count)
                best = times if best is None or times.sum() < best.sum() else best
                logger.info("Run %d/%d: %.3f ms per query", r + 1, args.runs, 1000 * times.mean())
            hits = np.array([len(np.intersect1d(a, b)) for a, b in zip(neighbors, truth)])
            recall = hits.mean() / args.count
            rank1 = float((neighbors[:, 0] == truth[:, 0]).mean())
            rows.append({"algorithm": algo.name, "parameters": str(algo), "recall": recall, "recall@1": rank1,
                         "qps": 1 / best.mean(), "p50_ms": 1000 * np.percentile(best, 50),
                         "p95_ms": 1000 * np.percentile(best, 95), "build_s": build_time})
            fname = "".join(c if c.isalnum() else "_" for c in str(algo)) + ".hdf5"
            with h5py.File(os.path.join(args.out, fname), "w") as f:
                f.attrs.update({"name": str(algo), "algo": algo.name, "build_time": build_time, "count": args.count,
                                "best_search_time": best.mean(), "run_count": args.runs, "recall": recall})
                f["neighbors"] = neighbors
                f["times"] = best
                f["hits"] = hits
    df = pd.DataFrame(rows).sort_values(["recall", "parameters"], ascending=[False, True])
    print(df.drop(columns="algorithm").to_string(index=False, float_format=lambda v: f"{v:.4f}"))
    df.to_csv(os.path.join(args.out, "summary.csv"), index=False)
    with open(os.path.join(args.out, "environment.json"), "w") as f:
        json.dump({"host": platform.node(), "machine": platform.machine(), "numpy": np.__version__,
                   "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "max_rss_mb": round(rss_mb(), 1),
                   "args": vars(args)}, f, indent=2)
    logger.info("wrote %d result files to %s/", len(rows), args.out)


if __name__ == "__main__":
    main()
