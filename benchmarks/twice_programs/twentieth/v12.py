"""Loop analysis of cross-linked polymer networks.

Grows a few random cross-linked melts, finds the independent loops of each
network and derives loop-length statistics and a simple elasticity estimate.
Writes loops.csv, loop_histogram.npz and network_summary.json.
Modelled on: https://github.com/networkx/networkx/issues/6653
"""
import argparse
import csv
import json
import logging
import math
import time

import networkx as nx
import numpy as np

log = logging.getLogger("loops")

KT = 4.11  # pN nm at room temperature
BOND_LENGTH = 0.47  # nm


class Bead:
    """One coarse-grained bead of a chain."""

    __slots__ = ("serial", "chain", "kind", "pos")

    def __init__(self, serial, chain, kind, pos):
        self.serial = serial
        self.chain = chain
        self.kind = kind
        self.pos = pos

    def __repr__(self):
        return f"<Bead {self.serial} {self.kind}>"


class Melt:
    """A melt of linear chains in a periodic box, cross-linked at random."""

    def __init__(self, n_chains, chain_length, box, seed):
        self.box = float(box)
        self.rng = np.random.default_rng(seed)
        self.graph = nx.Graph()
        self.beads = []
        for chain in range(n_chains):
            self._grow_chain(chain, chain_length)

    def _grow_chain(self, chain, length):
        start = self.rng.uniform(0.0, self.box, size=3)
        steps = self.rng.normal(size=(length, 3))
        steps *= BOND_LENGTH / np.linalg.norm(steps, axis=1, keepdims=True)
        path = (start + np.cumsum(steps, axis=0)) % self.box
        previous = None
        for i in range(length):
            kind = "B" if i % 12 == 6 else "A"
            bead = Bead(len(self.beads), chain, kind, path[i])
            self.beads.append(bead)
            self.graph.add_node(bead)
            if previous is not None:
                self.graph.add_edge(previous, bead, bond="backbone")
            previous = bead

    def crosslink(self, fraction, reach):
        """Join reactive beads that are closer than `reach`."""
        reactive = [b for b in self.beads if b.kind == "B"]
        pos = np.array([b.pos for b in reactive])
        order = self.rng.permutation(len(reactive))
        free = np.ones(len(reactive), dtype=bool)
        target = int(fraction * len(reactive) / 2)
        made = 0
        for i in order:
            if made >= target or not free[i]:
                continue
            delta = pos - pos[i]
            delta -= self.box * np.round(delta / self.box)
            dist = np.sqrt((delta ** 2).sum(axis=1))
            dist[i] = np.inf
            dist[~free] = np.inf
            j = int(np.argmin(dist))
            if dist[j] <= reach:
                self.graph.add_edge(reactive[i], reactive[j], bond="crosslink")
                free[i] = free[j] = False
                made += 1
        return made


def independent_loops(graph, root=None):
    """A basis of the cycles of `graph`, one list of beads per loop."""
    todo = set(graph.nodes())  # cause
    loops = []
    while todo:
        if root is None:
            root = todo.pop()  # cause
        stack = [root]
        pred = {root: root}
        used = {root: set()}
        while stack:
            z = stack.pop()
            zused = used[z]
            for nbr in graph[z]:
                if nbr not in used:
                    pred[nbr] = z
                    stack.append(nbr)
                    used[nbr] = {z}
                elif nbr is z:
                    loops.append([z])
                elif nbr not in zused:
                    pn = used[nbr]
                    loop = [nbr, z]
                    p = pred[z]
                    while p not in pn:
                        loop.append(p)
                        p = pred[p]
                    loop.append(p)
                    loops.append(loop)
                    used[nbr].add(z)
        todo -= set(pred)
        root = None
    return loops


def describe_loop(graph, loop):
    """Length, number of chains and number of cross-links of a loop."""
    chains = {bead.chain for bead in loop}
    links = 0
    for a, b in zip(loop, loop[1:] + loop[:1]):
        if graph.has_edge(a, b) and graph[a][b]["bond"] == "crosslink":
            links += 1
    return len(loop), len(chains), links


def elastic_modulus(lengths, box):
    """Affine estimate: each loop counts with the inverse of its length."""
    strands = sum(1.0 / math.sqrt(n) for n in lengths if n > 2)
    volume = box ** 3
    return KT * strands / volume


def analyse(melt, label):
    graph = melt.graph
    pieces = nx.number_connected_components(graph)
    loops = independent_loops(graph)
    rows = []
    for k, loop in enumerate(loops):
        length, chains, links = describe_loop(graph, loop)
        rows.append({"melt": label, "loop": k, "length": length, "chains": chains, "links": links})
    lengths = np.array([r["length"] for r in rows])
    summary = {
        "melt": label,
        "beads": graph.number_of_nodes(),
        "bonds": graph.number_of_edges(),
        "components": pieces,
        "loops": len(rows),
        "mean_length": float(lengths.mean()),
        "median_length": float(np.median(lengths)),
        "longest": int(lengths.max()),
        "primary_loops": int(sum(r["chains"] == 1 for r in rows)),
        "mean_links": float(np.mean([r["links"] for r in rows])),
        "modulus_pN_nm2": elastic_modulus(lengths.tolist(), melt.box),
    }
    return rows, summary, lengths


def write_results(rows, summaries, histogram, edges):
    with open("loops.csv", "w", newline="") as fh:
        writer = csv.DictWriter(fh, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    np.savez("loop_histogram.npz", counts=histogram, edges=edges)
    with open("network_summary.json", "w") as fh:
        json.dump(summaries, fh, indent=2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--melts", type=int, default=12)
    parser.add_argument("--chains", type=int, default=90)
    parser.add_argument("--length", type=int, default=120)
    parser.add_argument("--box", type=float, default=9.0)
    parser.add_argument("--fraction", type=float, default=0.8)
    parser.add_argument("--seed", type=int, default=2023)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")

    all_rows, summaries, all_lengths = [], [], []
    started = time.time()
    for m in range(args.melts):
        melt = Melt(args.chains, args.length, args.box, args.seed + m)
        made = melt.crosslink(args.fraction, reach=1.6)
        rows, summary, lengths = analyse(melt, f"melt{m}")
        all_rows += rows
        summaries.append(summary)
        all_lengths.append(lengths)
        log.info("%s: %d cross-links, %d loops, mean length %.3f, modulus %.6f",
                 summary["melt"], made, summary["loops"], summary["mean_length"], summary["modulus_pN_nm2"])

    edges = np.arange(0, 3001, 50)
    histogram, _ = np.histogram(np.concatenate(all_lengths), bins=edges)
    write_results(all_rows, summaries, histogram, edges)
    moduli = np.array([s["modulus_pN_nm2"] for s in summaries])
    print(f"mean modulus over {len(moduli)} melts: {moduli.mean():.6f} +- {moduli.std():.6f} pN/nm^2")
    print(f"mean loop length: {np.concatenate(all_lengths).mean():.3f}")
    log.info("finished in %.1f s", time.time() - started)


if __name__ == "__main__":
    main()
