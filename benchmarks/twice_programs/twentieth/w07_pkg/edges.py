"""Held-out positive links and sampled negative links."""
import numpy as np


class EdgeSplitter:
    def __init__(self, graph, seed):
        self.graph = graph
        self.rng = np.random.default_rng(seed)

    def split(self, fraction):
        edges = self.graph.edges
        order = self.rng.permutation(len(edges))
        n = int(len(edges) * fraction)
        positive, kept = edges[order[:n]], edges[order[n:]]
        negative = self._negative(n)
        links = np.concatenate([positive, negative])
        labels = np.r_[np.ones(n, dtype=int), np.zeros(n, dtype=int)]
        return self.graph.with_edges(kept), links, labels

    def _negative(self, n):
        known = {tuple(e) for e in self.graph.edges.tolist()}
        out = []
        while len(out) < n:
            u, v = sorted(self.rng.integers(0, self.graph.n_nodes, 2).tolist())
            if u != v and (u, v) not in known:
                known.add((u, v))
                out.append((u, v))
        return np.array(out)
