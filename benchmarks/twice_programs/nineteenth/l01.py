"""Walking access to clinics on a synthetic street network.

Builds an irregular street grid, samples demand points along the streets in
proportion to street length, routes each of them to the nearest clinic and
writes an access table and a summary.

Modelled on: https://github.com/gboeing/osmnx/issues/1352
"""
import argparse
import heapq
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd

WALK_SPEED = 1.25  # metres per second


def build_nodes(n_rows, n_cols, spacing, rng):
    ys, xs = np.meshgrid(np.arange(n_rows), np.arange(n_cols), indexing="ij")
    xy = np.column_stack([xs.ravel(), ys.ravel()]).astype(float) * spacing
    xy += rng.normal(0.0, spacing * 0.12, size=xy.shape)
    nodes = pd.DataFrame(xy, columns=["x", "y"])
    nodes.index.name = "node"
    return nodes


def build_edges(nodes, n_rows, n_cols, drop_share, rng):
    rows = []
    for r in range(n_rows):
        for c in range(n_cols):
            u = r * n_cols + c
            if c + 1 < n_cols:
                rows.append((u, u + 1))
            if r + 1 < n_rows:
                rows.append((u, u + n_cols))
    edges = pd.DataFrame(rows, columns=["u", "v"])
    keep = rng.random(len(edges)) >= drop_share
    edges = edges[keep].reset_index(drop=True)
    a = nodes.loc[edges["u"], ["x", "y"]].to_numpy()
    b = nodes.loc[edges["v"], ["x", "y"]].to_numpy()
    edges["length"] = np.hypot(*(a - b).T)
    edges["kind"] = np.where(rng.random(len(edges)) < 0.2, "arterial", "residential")
    return edges


def adjacency(nodes, edges):
    adj = {n: [] for n in nodes.index}
    for u, v, length in edges[["u", "v", "length"]].itertuples(index=False):
        adj[u].append((v, length))
        adj[v].append((u, length))
    return adj


def largest_component(adj):
    seen = set()
    best = []
    for start in adj:
        if start in seen:
            continue
        stack, comp = [start], []
        seen.add(start)
        while stack:
            n = stack.pop()
            comp.append(n)
            for m, _ in adj[n]:
                if m not in seen:
                    seen.add(m)
                    stack.append(m)
        if len(comp) > len(best):
            best = comp
    return sorted(best)


def multi_source_dijkstra(adj, sources):
    dist = {s: 0.0 for s in sources}
    origin = {s: s for s in sources}
    heap = [(0.0, s) for s in sources]
    heapq.heapify(heap)
    while heap:
        d, n = heapq.heappop(heap)
        if d > dist[n]:
            continue
        for m, length in adj[n]:
            nd = d + length
            if nd < dist.get(m, np.inf):
                dist[m] = nd
                origin[m] = origin[n]
                heapq.heappush(heap, (nd, m))
    return dist, origin


def sample_points(nodes, edges, n):
    """Sample ``n`` points uniformly along the street centre lines."""
    weights = edges["length"].to_numpy()
    rng = np.random.default_rng()  # cause
    idx = rng.choice(edges.index.to_numpy(), size=n, p=weights / weights.sum())
    frac = rng.random(n)
    picked = edges.loc[idx].reset_index(drop=True)
    a = nodes.loc[picked["u"], ["x", "y"]].to_numpy()
    b = nodes.loc[picked["v"], ["x", "y"]].to_numpy()
    xy = a + (b - a) * frac[:, None]
    return pd.DataFrame(
        {
            "x": xy[:, 0],
            "y": xy[:, 1],
            "u": picked["u"],
            "v": picked["v"],
            "to_u": picked["length"] * frac,
            "to_v": picked["length"] * (1.0 - frac),
            "kind": picked["kind"],
        }
    )


def attach_access(points, dist, origin):
    via_u = points["to_u"] + points["u"].map(dist)
    via_v = points["to_v"] + points["v"].map(dist)
    use_u = via_u <= via_v
    points["metres"] = np.where(use_u, via_u, via_v)
    points["clinic"] = np.where(use_u, points["u"].map(origin), points["v"].map(origin))
    points["minutes"] = points["metres"] / WALK_SPEED / 60.0
    return points


def summarise(points, clinics):
    by_clinic = points.groupby("clinic")["minutes"].agg(["size", "mean", "max"])
    by_clinic = by_clinic.reindex(clinics).fillna(0.0)
    return {
        "n_points": int(len(points)),
        "mean_minutes": float(points["minutes"].mean()),
        "p90_minutes": float(points["minutes"].quantile(0.9)),
        "share_within_10": float((points["minutes"] <= 10).mean()),
        "by_kind": points.groupby("kind")["minutes"].mean().round(4).to_dict(),
        "catchments": {int(k): int(v) for k, v in by_clinic["size"].items()},
    }


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--rows", type=int, default=220)
    ap.add_argument("--cols", type=int, default=260)
    ap.add_argument("--points", type=int, default=4000)
    ap.add_argument("--clinics", type=int, default=7)
    ap.add_argument("--seed", type=int, default=11)
    ap.add_argument("--out", default="access")
    args = ap.parse_args()

    t0 = time.perf_counter()
    np.random.seed(args.seed)
    rng = np.random.default_rng(args.seed)
    out = Path(args.out)
    out.mkdir(exist_ok=True)

    nodes = build_nodes(args.rows, args.cols, 90.0, rng)
    edges = build_edges(nodes, args.rows, args.cols, 0.14, rng)
    comp = largest_component(adjacency(nodes, edges))
    nodes = nodes.loc[comp]
    edges = edges[edges["u"].isin(comp) & edges["v"].isin(comp)].reset_index(drop=True)
    adj = adjacency(nodes, edges)
    print(f"network: {len(nodes)} nodes, {len(edges)} edges, {edges['length'].sum() / 1000:.1f} km")

    clinics = sorted(int(c) for c in rng.choice(nodes.index.to_numpy(), args.clinics, replace=False))
    dist, origin = multi_source_dijkstra(adj, clinics)

    points = attach_access(sample_points(nodes, edges, args.points), dist, origin)
    points.to_csv(out / "points.csv", index=False, float_format="%.3f")
    summary = summarise(points, clinics)
    (out / "summary.json").write_text(json.dumps(summary, indent=2))

    for key in ("mean_minutes", "p90_minutes", "share_within_10"):
        print(f"{key:>16}: {summary[key]:.4f}")
    print(f"done in {time.perf_counter() - t0:.2f}s")


if __name__ == "__main__":
    main()
