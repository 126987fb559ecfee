"""Approximate nearest neighbour benchmark, one subprocess per algorithm, HDF5 results, in the style of erikbern/ann-benchmarks."""
import argparse
import json
import logging
import os
import resource
import subprocess
import sys
import time

import h5py
import numpy as np
from numba import njit

logging.basicConfig(format="%(asctime)s - annb.%(module)s - %(levelname)s - %(message)s", level=logging.INFO)
logger = logging.getLogger("annb")

DEFINITIONS = {
    "bruteforce": [{}],
    "ivf": [{"n_list": 40, "n_probe": 2}, {"n_list": 40, "n_probe": 6}],
    "lsh": [{"n_bits": 8, "n_tables": 4}, {"n_bits": 8, "n_tables": 10}],
}


@njit(cache=False)
def topk_l2(cand, X, q, k):
    best_d = np.full(k, np.inf)
    best_i = np.full(k, -1, dtype=np.int64)
    for c in cand:
        d = 0.0
        for j in range(q.shape[0]):
            t = X[c, j] - q[j]
            d += t * t
        if d < best_d[k - 1]:
            p = k - 1
            while p > 0 and best_d[p - 1] > d:
                best_d[p] = best_d[p - 1]
                best_i[p] = best_i[p - 1]
                p -= 1
            best_d[p] = d
            best_i[p] = c
    return best_i, best_d


class BruteForce:
    def __init__(self, **kw):
        self.name = "BruteForce()"

    def fit(self, X):
        self.X, self.all = X, np.arange(len(X))

    def query(self, q, k):
        return topk_l2(self.all, self.X, q, k), len(self.all)

    def size(self):
        return self.X.nbytes


class IVF(BruteForce):
    def __init__(self, n_list, n_probe):
        self.n_list, self.n_probe = n_list, n_probe
        self.name = f"IVF(n_list={n_list},n_probe={n_probe})"

    def fit(self, X):
        from sklearn.cluster import KMeans

        self.X = X
        km = KMeans(self.n_list, n_init=1, max_iter=15, random_state=0).fit(X)
        self.centers = km.cluster_centers_.astype(np.float32)
        self.lists = [np.flatnonzero(km.labels_ == c) for c in range(self.n_list)]

    def query(self, q, k):
        order = np.argsort(((self.centers - q) ** 2).sum(1), kind="stable")[: self.n_probe]
        cand = np.concatenate([self.lists[c] for c in order])
        return topk_l2(cand, self.X, q, k), len(cand)

    def size(self):
        return self.X.nbytes + self.centers.nbytes


class LSH(BruteForce):
    def __init__(self, n_bits, n_tables):
        self.n_bits, self.n_tables = n_bits, n_tables
        self.name = f"LSH(n_bits={n_bits},n_tables={n_tables})"

    def fit(self, X):
        self.X = X
        rng = np.random.default_rng(99)
        self.planes = rng.normal(size=(self.n_tables, self.n_bits, X.shape[1])).astype(np.float32)
        self.pow2 = 1 << np.arange(self.n_bits)
        self.tables = []
        for t in range(self.n_tables):
            key = ((X @ self.planes[t].T) > 0) @ self.pow2
            self.tables.append({h: np.flatnonzero(key == h) for h in np.unique(key)})

    def query(self, q, k):
        got = [self.tables[t].get(int(((self.planes[t] @ q) > 0) @ self.pow2), np.empty(0, np.int64))
               for t in range(self.n_tables)]
        cand = np.unique(np.concatenate(got))
        return topk_l2(cand, self.X, q, k), len(cand)


ALGOS = {"bruteforce": BruteForce, "ivf": IVF, "lsh": LSH}


def write_dataset(path, n, nq, dim, k):
    rng = np.random.default_rng(1)
    centers = rng.normal(size=(60, dim)) * 0.6
    X = (centers[rng.integers(0, 60, n)] + rng.normal(size=(n, dim))).astype(np.float32)
    Q = (centers[rng.integers(0, 60, nq)] + rng.normal(size=(nq, dim))).astype(np.float32)
    nb = np.array([np.argsort(((X - q) ** 2).sum(1, dtype=np.float64), kind="stable")[:k] for q in Q])
    with h5py.File(path, "w") as f:
        f.attrs["distance"] = "euclidean"
        f.create_dataset("train", data=X)
        f.create_dataset("test", data=Q)
        f.create_dataset("neighbors", data=nb)
    logger.info("wrote %s (%d train, %d test)", path, n, nq)


def run_algorithm(args):
    with h5py.File(args.dataset, "r") as f:
        X, Q = f["train"][:], f["test"][:]
    topk_l2(np.arange(20), X, Q[0], args.count)          # compile before the clock starts
    out_dir = os.path.join("results", os.path.basename(args.dataset)[:-5], str(args.count), args.algorithm)
    os.makedirs(out_dir, exist_ok=True)
    for params in DEFINITIONS[args.algorithm]:
        algo = ALGOS[args.algorithm](**params)
        t0 = time.time()
        algo.fit(X)
        build = time.time() - t0
        logger.info("Built index in %f", build)
        best = float("inf")
        for run in range(args.runs):
            logger.info("Run %d/%d...", run + 1, args.runs)
            times, nbrs, dists, cands = [], [], [], 0
            for q in Q:
                s = time.perf_counter()
                (i, d), n = algo.query(q, args.count)
                times.append(time.perf_counter() - s)
                nbrs.append(i)
                dists.append(np.sqrt(d))
                cands += n
            best = min(best, float(np.mean(times)))
        fn = "_".join([args.algorithm] + [str(v) for v in params.values()]) + ".hdf5"
        with h5py.File(os.path.join(out_dir, fn), "w") as f:
            f.attrs.update(dict(algo=args.algorithm, name=algo.name, dataset=args.dataset, count=args.count,
                                run_count=args.runs, build_time=build, best_search_time=best,
                                candidates=cands / len(Q), index_size=algo.size() / 1024, run_date=time.ctime(),
                                peak_rss=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
            f.create_dataset("times", data=np.array(times))
            f.create_dataset("neighbors", data=np.array(nbrs), compression="gzip")
            f.create_dataset("distances", data=np.array(dists), compression="gzip")


def plot(args):
    with h5py.File(args.dataset, "r") as f:
        truth = f["neighbors"][:]
    rows = []
    for root, dirs, files in os.walk("results"):
        dirs.sort()
        for fn in sorted(files):
            if not fn.endswith(".hdf5"):
                continue
            with h5py.File(os.path.join(root, fn), "r") as f:
                got, a = f["neighbors"][:], f.attrs
                rec = np.mean([len(set(g) & set(t)) / args.count for g, t in zip(got, truth)])
                rows.append({"algorithm": a["algo"], "parameters": a["name"], "k-nn": float(rec),
                             "candidates": float(a["candidates"]), "qps": 1.0 / a["best_search_time"],
                             "p99": float(np.percentile(f["times"][:], 99) * 1000), "build": float(a["build_time"]),
                             "indexsize": float(a["index_size"])})
    for i, r in enumerate(rows):
        print("%d: %36s %12.3f %14.3f %12.1f" % (i, r["parameters"], r["k-nn"], r["qps"], r["candidates"]))
    with open("results/summary.json", "w") as f:
        json.dump(rows, f, indent=1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--dataset", default="data/blobs-24-euclidean.hdf5")
    p.add_argument("--count", type=int, default=10)
    p.add_argument("--runs", type=int, default=2)
    p.add_argument("--algorithm", choices=sorted(ALGOS))
    args = p.parse_args()
    if args.algorithm:
        return run_algorithm(args)
    os.makedirs("data", exist_ok=True)
    write_dataset(args.dataset, 4000, 200, 24, args.count)
    logger.info("Order: %s", sorted(ALGOS))
    for a in sorted(ALGOS):
        t0 = time.time()
        subprocess.run([sys.executable, os.path.abspath(__file__), "--algorithm", a, "--dataset", args.dataset,
                        "--count", str(args.count), "--runs", str(args.runs)], check=True)
        logger.info("subprocess for %s finished after %.1fs", a, time.time() - t0)
    plot(args)


if __name__ == "__main__":
    main()
