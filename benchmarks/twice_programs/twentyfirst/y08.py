"""Cut a predicted structure into pseudo-rigid domains from its error matrix.

Turns the predicted aligned error (PAE) between residues into a weighted graph,
partitions it and writes one line per cluster, as well as the domain table for
the model builder.

Modelled on: https://github.com/tristanic/pae_to_domains/issues/2
"""
import csv
import json
import logging
import time

import networkx as nx
import numpy as np

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("pae_to_domains")
SEED = 17


# --------------------------------------------------------------------------
# a prediction
# --------------------------------------------------------------------------
def predicted_structure(rng, n_domains=9, size=(22, 46), linker=(4, 14)):
    """Domain index per residue (-1 for linkers) and rough CA coordinates."""
    label, xyz = [], []
    centre = np.zeros(3)
    for d in range(n_domains):
        m = int(rng.integers(*size))
        label += [d] * m
        xyz.append(centre + np.cumsum(rng.normal(0, 1.6, (m, 3)), axis=0) * 0.5)
        k = int(rng.integers(*linker))
        label += [-1] * k
        step = rng.normal(0, 1, 3)
        step *= 3.8 / np.linalg.norm(step)
        base = xyz[-1][-1]
        xyz.append(base + np.outer(np.arange(1, k + 1), step) + rng.normal(0, 0.6, (k, 3)))
        centre = xyz[-1][-1]
    return np.array(label), np.vstack(xyz)


def predicted_aligned_error(label, xyz, rng):
    n = len(label)
    d = np.linalg.norm(xyz[:, None] - xyz[None], axis=-1)
    same = (label[:, None] == label[None]) & (label[:, None] >= 0)
    seq = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    pae = np.where(same, 2.0 + 0.14 * d, 7.0 + 0.22 * d)
    pae = np.where(seq < 8, np.minimum(pae, 1.5 + 0.5 * seq), pae)
    contact = rng.random((label.max() + 1,) * 2) < 0.25
    contact |= contact.T
    inside = (label[:, None] >= 0) & (label[None] >= 0)
    pae = np.where(inside & contact[label[:, None].clip(0), label[None].clip(0)], pae * 0.72, pae)
    pae = pae * rng.lognormal(0, 0.45, (n, n))
    return np.clip(pae, 0.2, 31.75)


def write_pae_json(path, pae):
    with open(path, "w") as fh:
        json.dump([{"predicted_aligned_error": np.round(pae, 2).tolist(), "max_predicted_aligned_error": 31.75}], fh)


def parse_pae_file(path):
    with open(path) as fh:
        data = json.load(fh)
    return np.array(data[0]["predicted_aligned_error"])


# --------------------------------------------------------------------------
# partitioning
# --------------------------------------------------------------------------
def pae_graph(pae, pae_power=1.0, pae_cutoff=10.0):
    weights = 1.0 / pae ** pae_power
    g = nx.Graph()
    g.add_nodes_from(range(len(pae)))
    sym = np.maximum(weights, weights.T)
    near = np.minimum(pae, pae.T) < pae_cutoff
    for i, j in np.argwhere(np.triu(near, 1)):
        g.add_edge(int(i), int(j), weight=float(sym[i, j]))
    return g


def domains_from_graph(g, resolution):
    parts = nx.community.louvain_communities(g, weight="weight", resolution=resolution)  # cause
    parts = [sorted(p) for p in parts]
    parts.sort(key=lambda p: (-len(p), p[0]))
    return parts


def split_discontinuous(cluster, gap=6):
    runs, cur = [], [cluster[0]]
    for r in cluster[1:]:
        if r - cur[-1] <= gap:
            cur.append(r)
        else:
            runs.append(cur)
            cur = [r]
    return runs + [cur]


# --------------------------------------------------------------------------
# tables
# --------------------------------------------------------------------------
def overlap_score(parts, label):
    """How much of each true domain sits in its best cluster."""
    score = []
    for d in range(label.max() + 1):
        members = set(np.flatnonzero(label == d).tolist())
        best = max(len(members & set(p)) for p in parts)
        score.append(best / len(members))
    return score


def domain_table(parts, pae, min_size):
    rows = []
    for k, p in enumerate(parts):
        if len(p) < min_size:
            continue
        block = pae[np.ix_(p, p)]
        rows.append({"domain": k + 1, "residues": len(p), "segments": len(split_discontinuous(p)),
                     "first": p[0] + 1, "last": p[-1] + 1, "mean_pae": float(block.mean()),
                     "p90_pae": float(np.quantile(block, 0.9))})
    return rows


def scan(g, pae, label, resolutions):
    out = []
    for r in resolutions:
        parts = domains_from_graph(g, r)
        q = nx.community.modularity(g, parts, weight="weight", resolution=r)
        big = [p for p in parts if len(p) >= 10]
        out.append({"resolution": r, "clusters": len(parts), "large": len(big), "modularity": q,
                    "overlap": float(np.mean(overlap_score(parts, label))), "parts": parts})
        log.info("resolution %.2f: %d clusters, biggest %d residues", r, len(parts), len(parts[0]))
    return out


def choose(scans):
    return max(scans, key=lambda s: (round(s["overlap"] * s["modularity"], 12), -s["clusters"]))


def main():
    t0 = time.perf_counter()
    rng = np.random.default_rng(SEED)
    label, xyz = predicted_structure(rng)
    write_pae_json("model_predicted_aligned_error_v1.json", predicted_aligned_error(label, xyz, rng))
    pae = parse_pae_file("model_predicted_aligned_error_v1.json")
    g = pae_graph(pae, pae_power=1.0, pae_cutoff=10.0)
    log.info("%d residues, %d edges", g.number_of_nodes(), g.number_of_edges())
    scans = scan(g, pae, label, (0.8, 1.0, 1.2, 1.5, 2.0, 2.6, 3.4, 4.5))
    best = choose(scans)
    with open("clusters.csv", "w") as fh:
        for p in best["parts"]:
            fh.write(",".join(str(i) for i in p) + "\n")
    rows = domain_table(best["parts"], pae, 8)
    with open("domains.csv", "w", newline="") as fh:
        w = csv.DictWriter(fh, list(rows[0]))
        w.writeheader()
        w.writerows(rows)
    with open("scan.json", "w") as fh:
        json.dump([{k: v for k, v in s.items() if k != "parts"} for s in scans], fh, indent=1)
    print(f"Wrote {len(best['parts'])} clusters to clusters.csv. "
          f"Biggest cluster contains {len(best['parts'][0])} residues.")
    for s in scans:
        print(f"resolution {s['resolution']:.2f}  clusters {s['clusters']:3d}  modularity {s['modularity']:.6f}  "
              f"overlap {s['overlap']:.4f}")
    log.info("Run time was %.2f seconds.", time.perf_counter() - t0)


if __name__ == "__main__":
    main()
