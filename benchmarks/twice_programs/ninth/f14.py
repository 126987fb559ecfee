"""Out-of-core principal components and clusters of a table on disk.

Modelled on https://github.com/QuEraComputing/tsim/pull/84
A package begins to choose its batch size from a simple model of memory.
"""
import argparse
import json
import logging
import time
from pathlib import Path

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.decomposition import IncrementalPCA
from sklearn.metrics import normalized_mutual_info_score

from f14_stream.memory import rows_per_chunk

log = logging.getLogger("ooc")


def write_table(path, rows, cols, groups, seed):
    """A mixture with a low-dimensional signal that drifts along the file."""
    rng = np.random.default_rng(seed)
    basis = rng.normal(size=(8, cols))
    centres = rng.normal(0, 1.6, (groups, 8))
    out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, cols))
    label = np.zeros(rows, dtype=np.int64)
    for lo in range(0, rows, 5000):
        hi = min(lo + 5000, rows)
        k = rng.integers(0, groups, hi - lo)
        drift = 0.8 * np.sin(6.28 * np.arange(lo, hi) / rows)[:, None]
        z = centres[k] + rng.normal(0, 0.8, (hi - lo, 8)) + drift
        out[lo:hi] = z @ basis + rng.normal(0, 1.5, (hi - lo, cols))
        label[lo:hi] = k
    out.flush()
    return label


def chunks(table, size, least):
    lo = 0
    while lo < len(table):
        hi = lo + size
        if len(table) - hi < least:
            hi = len(table)
        yield np.asarray(table[lo:hi], dtype=np.float64)
        lo = hi


def fit(table, args):
    size = rows_per_chunk(table.shape[1], args.share, args.overhead)
    size = max(args.least, min(size, len(table)))
    log.info("%d rows in a chunk", size)
    pca = IncrementalPCA(args.components, whiten=True)
    t0 = time.time()
    for x in chunks(table, size, args.least):
        pca.partial_fit(x)
    log.info("components in %.2fs", time.time() - t0)

    km = MiniBatchKMeans(args.groups, random_state=args.seed, n_init=3, batch_size=1024)
    t0, seen = time.time(), 0
    for sweep in range(args.sweeps):
        for x in chunks(table, size, args.least):
            km.partial_fit(pca.transform(x))
            seen += len(x)
        log.info("sweep %d (%.0f rows/s)", sweep, seen / (time.time() - t0))
    return pca, km


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--rows", type=int, default=60000)
    ap.add_argument("--cols", type=int, default=48)
    ap.add_argument("--groups", type=int, default=10)
    ap.add_argument("--components", type=int, default=8)
    ap.add_argument("--sweeps", type=int, default=3)
    ap.add_argument("--share", type=float, default=0.001, help="part of the memory for a chunk")
    ap.add_argument("--overhead", type=float, default=3.0)
    ap.add_argument("--least", type=int, default=500)
    ap.add_argument("--seed", type=int, default=77)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    np.random.seed(args.seed)

    label = write_table("table.npy", args.rows, args.cols, args.groups, args.seed)
    table = np.load("table.npy", mmap_mode="r")
    pca, km = fit(table, args)

    cluster, recon = [], 0.0
    for lo in range(0, len(table), 4000):
        x = np.asarray(table[lo:lo + 4000], dtype=np.float64)
        z = pca.transform(x)
        cluster.append(km.predict(z))
        recon += float(((pca.inverse_transform(z) - x) ** 2).sum())
    cluster = np.concatenate(cluster)
    report = {
        "explained": [float(v) for v in pca.explained_variance_ratio_],
        "reconstruction": recon / table.size,
        "nmi": float(normalized_mutual_info_score(label, cluster)),
        "sizes": np.bincount(cluster, minlength=args.groups).tolist(),
    }
    log.info("reconstruction %.10f nmi %.6f", report["reconstruction"], report["nmi"])
    np.savez("model.npz", components=pca.components_, centres=km.cluster_centers_)
    Path("components.json").write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
