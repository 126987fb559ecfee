"""Force-directed layout of a graph, one worker thread per component.

Generates a graph with several connected components, lays each of them out by
simulated cooling (springs, repulsion and a random kick that becomes smaller),
packs the drawings into rows, and writes the coordinates.  Prints the quality
of the drawing: mean edge length, its spread, and the number of crossings.

Modelled on: https://github.com/ogdf/ogdf/issues/84
"""
import argparse
import random
import threading
import time

import networkx as nx
import numpy as np


class Randomness:
    """The random numbers of the program; one seed makes a run repeatable."""

    def __init__(self, seed):
        self.seed = seed
        self.generator = random.Random(seed)
        self.lock = threading.Lock()

    def kicks(self, count, width):
        with self.lock:
            values = [self.generator.gauss(0.0, width) for _ in range(2 * count)]
        return np.array(values).reshape(count, 2)

    def kicks_for(self, key, count, width):
        own = random.Random(f"{self.seed}/{key}")
        return np.array([own.gauss(0.0, width) for _ in range(2 * count)]).reshape(count, 2)


def make_graph(seed):
    rng = random.Random(seed)
    graph = nx.Graph()
    offset = 0
    for size in (70, 60, 55, 50, 45, 40):
        part = nx.connected_watts_strogatz_graph(size, 4, 0.12, seed=rng.randrange(1 << 30))
        graph.update(nx.relabel_nodes(part, {n: n + offset for n in part}))
        offset += size
    return graph


class ComponentLayout(threading.Thread):
    def __init__(self, index, graph, nodes, randomness, rounds):
        super().__init__(name=f"layout-{index}")
        self.index = index
        self.nodes = nodes
        self.randomness = randomness
        self.rounds = rounds
        place = {n: i for i, n in enumerate(nodes)}
        self.edges = np.array(sorted((place[a], place[b]) for a, b in graph.subgraph(nodes).edges))
        angle = 2 * np.pi * np.arange(len(nodes)) / len(nodes)
        self.position = np.column_stack([np.cos(angle), np.sin(angle)]) * len(nodes) ** 0.5

    def forces(self):
        delta = self.position[:, None, :] - self.position[None, :, :]
        distance2 = (delta ** 2).sum(axis=2) + 0.01
        force = (delta / distance2[:, :, None]).sum(axis=1)
        a, b = self.edges.T
        pull = (self.position[a] - self.position[b]) * 0.35
        np.add.at(force, a, -pull)
        np.add.at(force, b, pull)
        return force

    def run(self):
        count = len(self.nodes)
        for step in range(self.rounds):
            heat = 1.0 - step / self.rounds
            force = self.forces()
            length = np.hypot(*force.T)[:, None] + 1e-9
            move = force / length * np.minimum(length, 0.4 * heat)
            kick = self.randomness.kicks(count, 0.12 * heat)  # cause
            self.position = self.position + move + kick
        self.position -= self.position.min(axis=0)


def pack(layouts, width=40.0):
    """Put the drawings beside each other into rows."""
    x = y = row = 0.0
    where = {}
    for layout in sorted(layouts, key=lambda item: item.index):
        w, h = layout.position.max(axis=0)
        if x > 0 and x + w > width:
            x, y, row = 0.0, y + row + 1.0, 0.0
        for node, point in zip(layout.nodes, layout.position):
            where[node] = (point[0] + x, point[1] + y)
        x += w + 1.0
        row = max(row, h)
    return where


def crossings(layout):
    """Number of pairs of edges that cross."""
    p = layout.position
    a, b = p[layout.edges[:, 0]], p[layout.edges[:, 1]]

    def side(p0, p1, q):
        return (p1[:, None, 0] - p0[:, None, 0]) * (q[None, :, 1] - p0[:, None, 1]) - \
               (p1[:, None, 1] - p0[:, None, 1]) * (q[None, :, 0] - p0[:, None, 0])

    one = side(a, b, a) * side(a, b, b) < 0
    found = one & one.T
    shared = (layout.edges[:, None, :, None] == layout.edges[None, :, None, :]).any(axis=(2, 3))
    return int(np.triu(found & ~shared, 1).sum())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=84)
    parser.add_argument("--rounds", type=int, default=700)
    options = parser.parse_args()

    graph = make_graph(options.seed)
    components = sorted((sorted(c) for c in nx.connected_components(graph)), key=lambda c: c[0])
    randomness = Randomness(options.seed)
    layouts = [ComponentLayout(i, graph, nodes, randomness, options.rounds)
               for i, nodes in enumerate(components)]
    tick = time.perf_counter()
    for layout in layouts:
        layout.start()
    for layout in layouts:
        layout.join()
    print(f"layout of {len(components)} components took {time.perf_counter() - tick:.2f} s")

    where = pack(layouts)
    with open("layout.tsv", "w") as handle:
        for node in sorted(where):
            handle.write(f"{node}\t{where[node][0]:.4f}\t{where[node][1]:.4f}\n")
    lengths = np.array([np.hypot(where[a][0] - where[b][0], where[a][1] - where[b][1])
                        for a, b in sorted(graph.edges)])
    print(f"edges {len(lengths)} mean length {lengths.mean():.5f} spread {lengths.std():.5f}")
    for layout in layouts:
        print(f"  component {layout.index}: {len(layout.nodes)} nodes, {crossings(layout)} crossings")


if __name__ == "__main__":
    main()
