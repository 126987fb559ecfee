"""Data flow graph for a drift chamber simulation.

Report: https://github.com/WireCell/wire-cell-toolkit/issues/241
Source, noise, filter and sink nodes are connected and executed until nothing is left to do.
"""
import json
import logging
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy import signal

log = logging.getLogger("pgraph")


@dataclass
class SimConfig:
    planes: int = 6
    wires: int = 96
    ticks: int = 2048
    gain: float = 14.0
    seed: int = 404
    out: str = "frames"


class Node:
    """One component; pulls from its inputs and pushes one frame."""

    def __init__(self, kind, name):
        self.kind = kind
        self.name = name
        self.inputs = []
        self.frame = None

    def ready(self):
        return self.frame is None and all(i.frame is not None for i in self.inputs)

    def execute(self, ctx):
        raise NotImplementedError


class Depos(Node):
    def __init__(self, plane):
        super().__init__("depos", f"depos:{plane}")
        self.plane = plane

    def execute(self, ctx):
        cfg = ctx.cfg
        frame = np.zeros((cfg.wires, cfg.ticks))
        for step in range(cfg.wires):
            tick = (37 * self.plane + 9 * step) % cfg.ticks
            frame[step, tick] = cfg.gain * (1 + 0.1 * self.plane)
        self.frame = frame


class Noise(Node):
    def __init__(self, source, plane):
        super().__init__("noise", f"noise:{plane}")
        self.inputs = [source]

    def execute(self, ctx):
        shape = self.inputs[0].frame.shape
        spectrum = ctx.rng.normal(size=(shape[0], shape[1] // 2 + 1))
        self.frame = self.inputs[0].frame + 0.4 * np.fft.irfft(spectrum, n=shape[1], axis=1) * 20


class Filter(Node):
    def __init__(self, source, plane):
        super().__init__("filter", f"filter:{plane}")
        self.inputs = [source]
        self.sos = signal.butter(4, 0.2 + 0.02 * plane, output="sos")

    def execute(self, ctx):
        self.frame = signal.sosfiltfilt(self.sos, self.inputs[0].frame, axis=1)


class Sink(Node):
    def __init__(self, sources):
        super().__init__("sink", "sink")
        self.inputs = list(sources)

    def execute(self, ctx):
        self.frame = np.stack([s.frame for s in self.inputs])


class UnorderedMap:
    """Chained hash table with the interface that the graph code needs."""

    PRIMES = (13, 29, 59, 127)

    def __init__(self, size_hint):
        self.n_buckets = next(p for p in self.PRIMES if p > size_hint)
        self.buckets = [[] for _ in range(self.n_buckets)]

    def slot(self, node):
        return hash(node) % self.n_buckets  # cause

    def insert(self, node, degree):
        self.buckets[self.slot(node)].append([node, degree])

    def items(self):
        for bucket in self.buckets:
            yield from bucket


@dataclass
class Context:
    cfg: SimConfig
    rng: np.random.Generator
    trace: list = field(default_factory=list)


class Graph:
    def __init__(self):
        self.edges = []
        self.nodes = []

    def add(self, node):
        self.nodes.append(node)
        for src in node.inputs:
            self.edges.append((src, node))
        return node

    def run(self, ctx: Context):
        table = UnorderedMap(len(self.nodes))
        for node in self.nodes:
            table.insert(node, len(node.inputs))
        sweep = 0
        while True:
            ran = 0
            for node, _degree in table.items():
                if node.ready():
                    node.execute(ctx)
                    ctx.trace.append(node.name)
                    ran += 1
            sweep += 1
            log.info("sweep %d executed %d nodes", sweep, ran)
            if ran == 0:
                break


def build(cfg: SimConfig):
    graph = Graph()
    tails = []
    for plane in range(cfg.planes):
        src = graph.add(Depos(plane))
        noisy = graph.add(Noise(src, plane))
        tails.append(graph.add(Filter(noisy, plane)))
    return graph, graph.add(Sink(tails))


def hit_finding(frame: np.ndarray, nsigma: float = 4.0):
    rms = np.median(np.abs(frame), axis=2, keepdims=True) / 0.6745
    hits = frame > nsigma * rms
    charge = np.where(hits, frame, 0).sum(axis=(1, 2))
    return hits.sum(axis=(1, 2)), charge


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s [%(process)d] %(message)s")
    cfg = SimConfig()
    t0 = time.time()
    total_hits, total_charge = [], []
    trace = []
    for event in range(20):
        graph, sink = build(cfg)
        ctx = Context(cfg, np.random.default_rng([cfg.seed, event]))
        graph.run(ctx)
        hits, charge = hit_finding(sink.frame)
        total_hits.append(hits.tolist())
        total_charge.append([round(float(c), 6) for c in charge])
        trace.append(len(ctx.trace))
    out = Path(cfg.out)
    out.mkdir(exist_ok=True)
    np.save(out / "last_event.npy", sink.frame.astype(np.float32))
    (out / "hits.json").write_text(json.dumps({"hits": total_hits, "charge": total_charge, "nodes": trace}))
    print("plane 0 charge", [c[0] for c in total_charge])
    log.info("pid %d took %.2fs", os.getpid(), time.time() - t0)


if __name__ == "__main__":
    main()
