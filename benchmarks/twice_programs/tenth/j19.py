"""Modelled on https://github.com/angelolab/ark-analysis/pull/834

Neighbourhood analysis of synthetic multiplexed-imaging fields: counts neighbours per cell, clusters them and summarises each cluster.
"""
import argparse
import json
import logging
import os
import time

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

log = logging.getLogger("neighborhood")

CELL_TYPES = ["tumor", "cd4_t", "cd8_t", "b_cell", "macrophage", "fibroblast", "endothelial"]
MARKERS = ["CD3", "CD4", "CD8", "CD20", "CD68", "Vim", "CD31", "PanCK", "Ki67", "PD1"]
ALL_FOVS = [f"fov{i}" for i in range(1, 7)]

DEFAULTS = {
    "seed": 42,
    "size": 1024,
    "cells_per_fov": 320,
    "distlim": 60,
    "k_min": 3,
    "k_max": 9,
    "k_final": 7,
    "silhouette_subsample": 600,
}


def niche_centres(rng, size):
    names = ["core", "margin", "follicle", "stroma"]
    return {n: rng.uniform(0.15 * size, 0.85 * size, size=2) for n in names}


PREFERENCE = {
    "core": [0.70, 0.03, 0.05, 0.01, 0.10, 0.07, 0.04],
    "margin": [0.25, 0.15, 0.25, 0.05, 0.18, 0.07, 0.05],
    "follicle": [0.04, 0.25, 0.08, 0.50, 0.05, 0.04, 0.04],
    "stroma": [0.08, 0.08, 0.06, 0.04, 0.12, 0.42, 0.20],
}


def make_fov(rng, fov, cfg):
    centres = niche_centres(rng, cfg["size"])
    names = list(centres)
    pick = rng.integers(0, len(names), cfg["cells_per_fov"])
    rows = []
    for label, k in enumerate(pick, start=1):
        niche = names[k]
        xy = np.clip(centres[niche] + rng.normal(0, 120, 2), 0, cfg["size"] - 1)
        kind = rng.choice(len(CELL_TYPES), p=PREFERENCE[niche])
        rows.append((fov, label, xy[0], xy[1], CELL_TYPES[kind], float(rng.gamma(6, 12))))
    df = pd.DataFrame(rows, columns=["fov", "label", "centroid_0", "centroid_1", "cell_type", "cell_size"])
    base = rng.gamma(1.5, 0.2, size=(len(df), len(MARKERS)))
    hot = {"cd4_t": [0, 1], "cd8_t": [0, 2, 9], "b_cell": [3], "macrophage": [4], "fibroblast": [5], "endothelial": [6], "tumor": [7, 8]}
    for i, ct in enumerate(df["cell_type"]):
        base[i, hot[ct]] += rng.gamma(4, 0.5, len(hot[ct]))
    return pd.concat([df, pd.DataFrame(base, columns=MARKERS)], axis=1)


def make_cell_table(cfg):
    rng = np.random.default_rng(cfg["seed"])
    return pd.concat([make_fov(rng, f, cfg) for f in ALL_FOVS], ignore_index=True)


def neighborhood_matrix(cells, distlim):
    counts = np.zeros((len(cells), len(CELL_TYPES)))
    index = {c: i for i, c in enumerate(CELL_TYPES)}
    for fov, part in cells.groupby("fov", sort=True):
        xy = part[["centroid_0", "centroid_1"]].to_numpy()
        kinds = part["cell_type"].map(index).to_numpy()
        tree = cKDTree(xy)
        for row, near in zip(part.index, tree.query_ball_point(xy, r=distlim, return_sorted=True)):
            np.add.at(counts[row], kinds[near], 1)
    freqs = counts / counts.sum(axis=1, keepdims=True)
    return pd.DataFrame(counts, columns=CELL_TYPES), pd.DataFrame(freqs, columns=CELL_TYPES)


def fit_kmeans(data, k):
    return KMeans(n_clusters=k, n_init=1, max_iter=60).fit(data)  # cause


def cluster_metrics(freqs, cfg):
    step = max(1, len(freqs) // cfg["silhouette_subsample"])
    rows = []
    for k in range(cfg["k_min"], cfg["k_max"] + 1):
        km = fit_kmeans(freqs, k)
        score = silhouette_score(freqs[::step], km.labels_[::step])
        rows.append({"k": k, "inertia": float(km.inertia_), "silhouette": float(score)})
        log.info("k=%d inertia=%.2f silhouette=%.4f", k, km.inertia_, score)
    return pd.DataFrame(rows)


def assign_clusters(cells, freqs, k):
    km = fit_kmeans(freqs, k)
    order = np.argsort(-np.bincount(km.labels_, minlength=k), kind="stable")
    rank = np.empty(k, dtype=int)
    rank[order] = np.arange(1, k + 1)
    out = cells.copy()
    out["kmeans_neighborhood"] = rank[km.labels_]
    return out


def summarise(cells):
    by = cells.groupby("kmeans_neighborhood", sort=True)
    comp = cells.groupby(["kmeans_neighborhood", "cell_type"]).size().unstack(fill_value=0)
    comp = comp.reindex(columns=CELL_TYPES, fill_value=0)
    comp = comp.div(comp.sum(axis=1), axis=0)
    marker = by[MARKERS].mean()
    per_fov = cells.groupby(["fov", "kmeans_neighborhood"]).size().unstack(fill_value=0)
    return comp, marker, per_fov


def diversity(comp):
    p = comp.to_numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        h = -np.nansum(np.where(p > 0, p * np.log(p), 0.0), axis=1)
    return pd.Series(h, index=comp.index)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", default="neighborhood_output")
    ap.add_argument("--k", type=int, default=DEFAULTS["k_final"])
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    cfg = dict(DEFAULTS, k_final=args.k)
    os.makedirs(args.out, exist_ok=True)

    t0 = time.time()
    cells = make_cell_table(cfg)
    counts, freqs = neighborhood_matrix(cells, cfg["distlim"])
    counts.to_csv(os.path.join(args.out, "neighborhood_counts.csv"), index=False)
    log.info("%d cells in %d fovs, mean neighbours %.2f", len(cells), cells["fov"].nunique(), counts.sum(axis=1).mean())

    stats = cluster_metrics(freqs.to_numpy(), cfg)
    stats.to_csv(os.path.join(args.out, "cluster_metrics.csv"), index=False, float_format="%.6f")
    cells = assign_clusters(cells, freqs.to_numpy(), cfg["k_final"])
    comp, marker, per_fov = summarise(cells)
    cells[["fov", "label", "cell_type", "kmeans_neighborhood"]].to_csv(os.path.join(args.out, "cell_clusters.csv"), index=False)
    comp.to_csv(os.path.join(args.out, "composition.csv"), float_format="%.5f")
    marker.to_csv(os.path.join(args.out, "marker_means.csv"), float_format="%.5f")
    per_fov.to_csv(os.path.join(args.out, "per_fov.csv"))

    best = int(stats.loc[stats["silhouette"].idxmax(), "k"])
    with open(os.path.join(args.out, "summary.json"), "w") as fh:
        json.dump({"config": cfg, "best_k": best, "sizes": cells["kmeans_neighborhood"].value_counts().sort_index().to_dict()}, fh, indent=2)
    print(f"best k by silhouette: {best}")
    h = diversity(comp)
    for k, row in comp.iterrows():
        top = row.sort_values(ascending=False, kind="stable").index[:2]
        n = int((cells["kmeans_neighborhood"] == k).sum())
        print(f"cluster {k}: n={n:<4} diversity={h[k]:.3f} " + ", ".join(f"{t} {row[t]:.2f}" for t in top))
    log.info("finished in %.1fs", time.time() - t0)


if __name__ == "__main__":
    main()
