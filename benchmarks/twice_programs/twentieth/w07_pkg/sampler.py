"""Breadth-first neighbourhood sampling."""
import random


class SampledBreadthFirstWalk:
    """Samples a fixed number of neighbours per hop, with replacement."""

    def __init__(self, graph, seed=None):
        self.graph = graph
        self._random = random.Random(seed)

    def run(self, nodes, n_size):
        """For each node a list of hops: [[node], [n_1 neighbours], [n_1 * n_2 ...]]."""
        return [self._walk(node, n_size) for node in nodes]

    def _walk(self, node, n_size):
        hops = [[node]]
        for size in n_size:
            frontier = []
            for parent in hops[-1]:
                near = self.graph.neighbours(parent)
                if near:
                    frontier.extend(self._random.choices(near, k=size))
                else:
                    frontier.extend([parent] * size)
            hops.append(frontier)
        return hops
