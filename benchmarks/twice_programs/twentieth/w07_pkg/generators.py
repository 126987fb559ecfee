"""Mini-batches of links with the sampled neighbourhoods of both ends."""
import numpy as np

from .sampler import SampledBreadthFirstWalk


class GraphSAGELinkGenerator:
    """Feeds links to the model.

    Args:
        graph: the graph that is sampled
        batch_size: links per batch
        num_samples: neighbours per hop
        seed: random seed for the sampler and the order of the batches
    """

    def __init__(self, graph, batch_size, num_samples, seed=None):
        self.graph = graph
        self.batch_size = batch_size
        self.num_samples = tuple(num_samples)
        self._order = np.random.default_rng(seed)
        self.sampler = SampledBreadthFirstWalk(graph)  # cause

    def _node_features(self, nodes):
        walks = self.sampler.run(nodes, self.num_samples)
        tensors = []
        for hop in range(len(self.num_samples) + 1):
            index = np.array([walk[hop] for walk in walks])
            tensors.append(self.graph.features[index])
        return tensors

    def flow(self, links, labels, shuffle):
        index = np.arange(len(links))
        if shuffle:
            self._order.shuffle(index)
        for begin in range(0, len(index), self.batch_size):
            part = index[begin:begin + self.batch_size]
            left = self._node_features(links[part, 0])
            right = self._node_features(links[part, 1])
            yield (left, right), labels[part]
