"""Partition and schedule a dataflow graph, then run it under a memory plan.

Modelled on https://github.com/pytorch/pytorch/pull/189839

A layered graph of array operations is traced, pattern matches are grouped into
partitions, partitions are ordered by a list scheduler, buffers get offsets in
one arena, and the plan is executed in float32.  The plan and the numbers it
produces are written for comparison with other planners.
"""
import argparse
import json
import logging
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

log = logging.getLogger("planner")


class Node:
    """One operation; created by Graph.call and friends."""

    def __init__(self, name, op, args, shape, module=None):
        self.name = name
        self.op = op
        self.args = tuple(args)
        self.shape = shape
        self.module = module
        self.users = []
        for a in self.args:
            a.users.append(self)

    @property
    def nbytes(self):
        return 4 * int(np.prod(self.shape))

    def __repr__(self):
        return self.name


class Graph:
    def __init__(self):
        self.nodes = []
        self.counts = defaultdict(int)

    def _add(self, op, args, shape, module=None):
        self.counts[op] += 1
        node = Node(f"{op}_{self.counts[op]}", op, args, shape, module)
        self.nodes.append(node)
        return node

    def placeholder(self, shape):
        return self._add("input", (), shape)

    def param(self, shape, module):
        return self._add("param", (), shape, module)

    def call(self, op, args, module=None):
        shapes = [a.shape for a in args]
        if op == "matmul":
            shape = (shapes[0][0], shapes[1][1])
        else:
            shape = np.broadcast_shapes(*shapes)
        return self._add(op, args, shape, module)

    def module_nodes(self):
        groups = {}
        for node in self.nodes:
            if node.module is not None:
                groups.setdefault(node.module, []).append(node)
        return groups


class Partition:
    def __init__(self, name, nodes, input_nodes, output_nodes, params):
        self.name = name
        self.nodes = nodes
        self.input_nodes = input_nodes
        self.output_nodes = output_nodes
        self.params = params


def trace(rng, width, depth, batch):
    """Blocks of gated layers with skip connections between random blocks."""
    g = Graph()
    live = [g.placeholder((batch, width)) for _ in range(3)]
    for d in range(depth):
        module = f"block{d}"
        picks = [live[i] for i in rng.choice(len(live), size=min(12, len(live)), replace=False)]
        branches = []
        for k, src in enumerate(picks):
            w = g.param((width, width), module)
            b = g.param((1, width), module)
            h = g.call("matmul", (src, w), module)
            h = g.call("add", (h, b), module)
            h = g.call(("tanh", "relu", "sigmoid")[(d + k) % 3], (h,), module)
            branches.append(h)
        gate = g.call("mul", (branches[0], branches[-1]), module)
        live.extend(branches[:2])
        live.append(gate)
        if len(live) > 20:
            live = live[-20:]
    return g


def make_partition(name, nodes):
    input_nodes, output_nodes, params = set(), set(), set()  # cause
    inside = {n.name for n in nodes}
    for node in nodes:
        for arg in node.args:
            if arg.name not in inside:
                input_nodes.add(arg)
        if node.op == "param":
            params.add(node)
        elif not node.users or any(u.name not in inside for u in node.users):
            output_nodes.add(node)
    return Partition(name, nodes, list(input_nodes), list(output_nodes), list(params))  # cause


def get_partitions(graph):
    return [make_partition(m, ns) for m, ns in graph.module_nodes().items()]


class Arena:
    """First-fit offsets with reuse of released ranges."""

    def __init__(self):
        self.free = [(0, 1 << 40)]
        self.offsets = {}
        self.peak = 0

    def allocate(self, node):
        size = -(-node.nbytes // 64) * 64
        for i, (start, length) in enumerate(self.free):
            if length >= size:
                self.offsets[node.name] = start
                self.free[i] = (start + size, length - size)
                self.peak = max(self.peak, start + size)
                return
        raise MemoryError(node.name)

    def release(self, node):
        size = -(-node.nbytes // 64) * 64
        ranges = sorted(self.free + [(self.offsets[node.name], size)])
        merged = []
        for start, length in ranges:
            if merged and merged[-1][0] + merged[-1][1] == start:
                merged[-1] = (merged[-1][0], merged[-1][1] + length)
            elif length:
                merged.append((start, length))
        self.free = merged


def plan(graph, partitions):
    arena = Arena()
    remaining = {n.name: len(n.users) for n in graph.nodes}
    for node in graph.nodes:
        if node.op == "input":
            arena.allocate(node)
    steps = []
    for part in partitions:
        for p in part.params:
            arena.allocate(p)
        for node in part.nodes:
            if node.op != "param":
                arena.allocate(node)
        for src in part.input_nodes:
            remaining[src.name] -= sum(src in n.args for n in part.nodes)
            if remaining[src.name] <= 0:
                arena.release(src)
        for p in part.params:
            arena.release(p)
        steps.append({"partition": part.name,
                      "params": [[p.name, arena.offsets[p.name]] for p in part.params],
                      "inputs": [n.name for n in part.input_nodes],
                      "outputs": [n.name for n in part.output_nodes]})
    return arena, steps


OPS = {"add": np.add, "mul": np.multiply, "tanh": np.tanh,
       "relu": lambda x: np.maximum(x, 0), "matmul": np.matmul,
       "sigmoid": lambda x: 1 / (1 + np.exp(-x))}


def initialise(partitions, rng):
    """Parameter values, in the order in which the plan streams them in."""
    store = {}
    for part in partitions:
        for p in part.params:
            scale = 1.0 / np.sqrt(p.shape[0]) if p.shape[0] > 1 else 0.1
            store[p.name] = (scale * rng.standard_normal(p.shape)).astype(np.float32)
    return store


def execute(graph, partitions, store, inputs):
    values = dict(store)
    values.update(inputs)
    totals = []
    for part in partitions:
        for node in part.nodes:
            if node.op != "param":
                values[node.name] = OPS[node.op](*(values[a.name] for a in node.args))
        mix = np.float32(0)
        for out in part.output_nodes:
            mix += np.abs(values[out.name]).mean(dtype=np.float32)
        totals.append(float(mix))
    return totals


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--width", type=int, default=96)
    ap.add_argument("--depth", type=int, default=120)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--seed", type=int, default=147170)
    ap.add_argument("--out", type=Path, default=Path("plan"))
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, stream=sys.stdout,
                        format="%(asctime)s %(levelname).1s %(message)s")
    args.out.mkdir(exist_ok=True)
    seq = np.random.SeedSequence(args.seed).spawn(3)
    graph = trace(np.random.default_rng(seq[0]), args.width, args.depth, args.batch)
    began = time.perf_counter()
    partitions = get_partitions(graph)
    arena, steps = plan(graph, partitions)
    log.info("%d nodes, %d partitions, arena %.1f kB, planned in %.0f ms", len(graph.nodes),
             len(partitions), arena.peak / 1024, 1e3 * (time.perf_counter() - began))

    store = initialise(partitions, np.random.default_rng(seq[1]))
    rng = np.random.default_rng(seq[2])
    inputs = {n.name: rng.standard_normal(n.shape).astype(np.float32)
              for n in graph.nodes if n.op == "input"}
    totals = execute(graph, partitions, store, inputs)
    (args.out / "plan.json").write_text(json.dumps(
        {"peak": arena.peak, "steps": steps}, indent=1))
    with open(args.out / "activity.csv", "w") as fh:
        fh.write("partition,activity\n")
        for part, total in zip(partitions, totals):
            fh.write(f"{part.name},{total:.7f}\n")
    for part, total in list(zip(partitions, totals))[::24]:
        print(f"{part.name:8s} in {len(part.input_nodes)} out {len(part.output_nodes)} "
              f"activity {total:.6f}")
    print(f"sum of activities {sum(totals):.6f}")
    log.info("plan stored in %s", args.out.resolve())


if __name__ == "__main__":
    main()
