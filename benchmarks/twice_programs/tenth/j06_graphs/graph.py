"""Undirected graphs as adjacency lists."""
import numpy as np


class Graph:
    def __init__(self, name, n):
        self.name = name
        self.n = n
        self.adj = [[] for _ in range(n)]
        self.blocks = None

    def add_edges(self, edges):
        for a, b in edges:
            self.adj[a].append(b)
            self.adj[b].append(a)
        return self

    @property
    def m(self):
        return sum(len(a) for a in self.adj) // 2

    def degrees(self):
        return np.array([len(a) for a in self.adj])

    def edges(self):
        return [(a, b) for a in range(self.n) for b in self.adj[a] if a < b]

    def modularity(self, labels):
        deg = self.degrees()
        two_m = deg.sum()
        inside = sum(1 for a, b in self.edges() if labels[a] == labels[b])
        tot = np.bincount(labels, deg)
        return 2 * inside / two_m - float(np.sum((tot / two_m) ** 2))


def planted_partition(name, sizes, p_in, p_out, rng):
    n = sum(sizes)
    blocks = np.repeat(np.arange(len(sizes)), sizes)
    a, b = np.triu_indices(n, 1)
    p = np.where(blocks[a] == blocks[b], p_in, p_out)
    keep = rng.random(len(a)) < p
    g = Graph(name, n).add_edges(zip(a[keep].tolist(), b[keep].tolist()))
    g.blocks = blocks
    return g
