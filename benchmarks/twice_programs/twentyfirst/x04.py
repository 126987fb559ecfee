"""Joint clustering of a two-modality single-cell experiment.

RNA and protein counts of the same cells are normalised, each modality gets a
nearest-neighbour graph, the graphs are combined into one multiplex network
and communities are found by local moving with refinement. Cluster labels,
sizes and marker tables are written for the downstream notebook.

Modelled on: https://github.com/scverse/muon/issues/154
"""
import json
import logging
import time
from collections import Counter, defaultdict

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import NearestNeighbors

log = logging.getLogger("mudata")

SEED = 0
N_CELLS = 1800
RESOLUTION = 2.0
MOD_WEIGHTS = {"rna": 1.0, "prot": 1.0}


class MuData:
    """A few matrices over the same cells."""

    def __init__(self, **mods):
        self.mod = mods
        self.obs = pd.DataFrame(index=np.arange(len(next(iter(mods.values())))))
        self.obsp = {}

    @property
    def n_obs(self):
        return len(self.obs)


def simulate(n_cells, seed):
    """Nine populations along a loop, some poorly separated in each modality."""
    rng = np.random.default_rng(seed)
    types = rng.choice(9, n_cells, p=np.linspace(1, 2, 9) / np.linspace(1, 2, 9).sum())
    rna_prog = rng.gamma(1.2, 1.0, (9, 120))
    prot_prog = rng.gamma(2.0, 8.0, (9, 25))
    rna_prog[7] = 0.75 * rna_prog[6] + 0.25 * rna_prog[7]
    prot_prog[8] = 0.8 * prot_prog[7] + 0.2 * prot_prog[8]
    prot_prog[3] = 0.8 * prot_prog[2] + 0.2 * prot_prog[3]
    depth = rng.lognormal(0, 0.35, n_cells)
    stage = rng.uniform(0, 0.7, (n_cells, 1))          # cells in transition
    following = (types + 1) % 9
    rna_mean = (1 - stage) * rna_prog[types] + stage * rna_prog[following]
    prot_mean = (1 - stage) * prot_prog[types] + stage * prot_prog[following]
    rna = rng.poisson(rna_mean * depth[:, None])
    prot = rng.poisson(prot_mean * rng.lognormal(0, 0.5, (n_cells, 1)))
    return types, rna, prot


def log_normalise(counts):
    counts = counts.astype(float)
    total = counts.sum(axis=1, keepdims=True)
    return np.log1p(counts / total * np.median(total))


def clr(counts):
    x = np.log1p(counts.astype(float))
    return x - x.mean(axis=1, keepdims=True)


def pca(x, n_comps):
    """Exact SVD with a fixed sign convention."""
    x = x - x.mean(axis=0)
    u, s, vt = np.linalg.svd(x, full_matrices=False)
    flip = np.sign(vt[np.arange(len(vt)), np.abs(vt).argmax(axis=1)])
    return (u * s * flip)[:, :n_comps]


def neighbors(mdata, key, n_neighbors, n_comps):
    """Symmetric graph with Jaccard-like weights, as an adjacency list."""
    emb = pca(mdata.mod[key], n_comps)
    nn = NearestNeighbors(n_neighbors=n_neighbors + 1, algorithm="brute").fit(emb)
    idx = nn.kneighbors(emb, return_distance=False)[:, 1:]
    hoods = [set(row.tolist()) for row in idx]
    edges = {}
    for i, row in enumerate(idx):
        for j in row.tolist():
            a, b = (i, j) if i < j else (j, i)
            if (a, b) not in edges:
                shared = len(hoods[a] & hoods[b])
                edges[(a, b)] = (1 + shared) / (2 * n_neighbors)
    mdata.obsp[key] = edges
    log.info("%s graph: %d edges", key, len(edges))


def multiplex(mdata, weights):
    adj = defaultdict(dict)
    for key in sorted(weights):
        total = sum(mdata.obsp[key].values())
        for (a, b), w in mdata.obsp[key].items():
            w = weights[key] * w / total
            adj[a][b] = adj[a].get(b, 0.0) + w
            adj[b][a] = adj[b].get(a, 0.0) + w
    return adj


class Optimiser:
    """Modularity optimisation by fast local moves and aggregation."""

    def __init__(self, resolution):
        self.resolution = resolution
        self.rng = np.random.default_rng()

    def set_rng_seed(self, seed):
        self.rng = np.random.default_rng(seed)

    def _local_moves(self, adj, degree, labels):
        m2 = sum(degree.values())
        tot = defaultdict(float)
        for v, c in labels.items():
            tot[c] += degree[v]
        nodes = list(adj)
        moved_any = False
        queue = [nodes[i] for i in self.rng.permutation(len(nodes))]
        queued = set(queue)
        while queue:
            v = queue.pop()
            queued.discard(v)
            here = labels[v]
            links = defaultdict(float)
            for u, w in adj[v].items():
                if u != v:
                    links[labels[u]] += w
            tot[here] -= degree[v]
            best, gain = here, links.get(here, 0.0) - self.resolution * degree[v] * tot[here] / m2
            for c in sorted(links):
                g = links[c] - self.resolution * degree[v] * tot[c] / m2
                if g > gain + 1e-15:
                    best, gain = c, g
            tot[best] += degree[v]
            if best != here:
                labels[v] = best
                moved_any = True
                for u in adj[v]:
                    if labels[u] != best and u not in queued:
                        queue.insert(0, u)
                        queued.add(u)
        return moved_any

    def optimise(self, adj):
        membership = {v: v for v in adj}
        level = adj
        while True:
            degree = {v: sum(ws.values()) for v, ws in level.items()}
            labels = {v: v for v in level}
            if not self._local_moves(level, degree, labels):
                return membership
            membership = {v: labels[c] for v, c in membership.items()}
            coarse = defaultdict(dict)
            for v, ws in level.items():
                cv = labels[v]
                for u, w in ws.items():
                    cu = labels[u]
                    coarse[cv][cu] = coarse[cv].get(cu, 0.0) + w
            if len(coarse) == len(level):
                return membership
            level = coarse


def leiden(mdata, resolution=1.0, key_added="leiden", random_state=0,
           mod_weights=None):
    """Cluster cells over all modalities."""
    adj = multiplex(mdata, mod_weights or {k: 1.0 for k in mdata.mod})
    optimiser = Optimiser(resolution)
    if random_state:  # cause
        optimiser.set_rng_seed(random_state)
    membership = optimiser.optimise(adj)
    sizes = Counter(membership.values())
    rank = {c: str(i) for i, (c, _) in enumerate(
        sorted(sizes.items(), key=lambda kv: (-kv[1], kv[0])))}
    mdata.obs[key_added] = [rank[membership[v]] for v in range(mdata.n_obs)]
    return mdata


def markers(values, labels, top=4):
    table = []
    for lab in sorted(set(labels), key=int):
        inside = (labels == lab)
        diff = values[inside].mean(axis=0) - values[~inside].mean(axis=0)
        for feature in np.argsort(-diff, kind="stable")[:top]:
            table.append({"cluster": lab, "feature": int(feature),
                          "lfc": float(diff[feature])})
    return pd.DataFrame(table)


def main():
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s] %(message)s")
    t0 = time.time()
    types, rna, prot = simulate(N_CELLS, seed=154)
    mdata = MuData(rna=log_normalise(rna), prot=clr(prot))
    neighbors(mdata, "rna", n_neighbors=15, n_comps=20)
    neighbors(mdata, "prot", n_neighbors=15, n_comps=10)
    leiden(mdata, resolution=RESOLUTION, random_state=SEED,
           mod_weights=MOD_WEIGHTS)

    labels = mdata.obs["leiden"].to_numpy()
    sizes = mdata.obs["leiden"].value_counts()
    ari = adjusted_rand_score(types, labels)
    mdata.obs.assign(cell_type=types).to_csv("obs.csv")
    markers(mdata.mod["rna"], labels).to_csv("markers.csv", index=False)
    with open("clustering.json", "w") as fh:
        json.dump({"seed": SEED, "resolution": RESOLUTION,
                   "n_clusters": int(len(sizes)), "ari": ari,
                   "sizes": {k: int(sizes[k]) for k in sorted(sizes.index, key=int)}},
                  fh, indent=1)
    print(f"clusters {len(sizes)}  ARI {ari:.5f}")
    print("sizes", " ".join(str(sizes[k]) for k in sorted(sizes.index, key=int)))
    log.info("finished, took %.2fs", time.time() - t0)


if __name__ == "__main__":
    main()
