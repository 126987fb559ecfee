"""An undirected graph with node features."""
import numpy as np


class FeatureGraph:
    def __init__(self, n_nodes, edges, features):
        self.n_nodes = n_nodes
        self.edges = np.asarray(edges)
        self.features = features
        self.adjacency = [[] for _ in range(n_nodes)]
        for u, v in self.edges:
            self.adjacency[u].append(int(v))
            self.adjacency[v].append(int(u))

    def neighbours(self, node):
        return self.adjacency[node]

    def with_edges(self, edges):
        return FeatureGraph(self.n_nodes, edges, self.features)

    def info(self):
        degree = np.array([len(a) for a in self.adjacency])
        return (f"graph: {self.n_nodes} nodes, {len(self.edges)} edges, mean degree "
                f"{degree.mean():.2f}, {self.features.shape[1]} features")


def citation_graph(n_nodes, n_topics, n_features, seed):
    """Papers with topics; citations mostly stay inside a topic."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(0, n_topics, n_nodes)
    words = rng.dirichlet(np.full(n_features, 0.25), n_topics)
    features = np.stack([rng.multinomial(18, words[t]) for t in topic]).astype(float)
    features /= features.sum(1, keepdims=True)
    by_topic = [np.flatnonzero(topic == t) for t in range(n_topics)]
    edges, seen = [], set()
    for u in range(n_nodes):
        for _ in range(int(rng.integers(2, 7))):
            pool = by_topic[topic[u]] if rng.random() < 0.8 else np.arange(n_nodes)
            v = int(rng.choice(pool))
            key = (min(u, v), max(u, v))
            if u != v and key not in seen:
                seen.add(key)
                edges.append(key)
    return FeatureGraph(n_nodes, edges, features)
