"""Mesh network-on-chip traffic simulator.

Modelled on https://github.com/davidepatti/noxim/issues/65
Simulates wormhole-free packet routing on a mesh and reports delay and throughput.
"""
import argparse
import csv
import json
import logging
import random
import time
from collections import deque
from dataclasses import asdict, dataclass, field
from pathlib import Path

import networkx as nx
import numpy as np

log = logging.getLogger("noc")


@dataclass
class GlobalParams:
    mesh_dim_x: int = 8
    mesh_dim_y: int = 8
    buffer_depth: int = 64
    packet_injection_rate: float = 0.06
    warm_up: int = 150
    simulation_time: int = 26000
    traffic: str = "random"
    rnd_generator_seed: int = field(default_factory=time.time_ns)  # cause


@dataclass
class Packet:
    src: tuple
    dst: tuple
    born: int
    hops: int = 0


@dataclass
class Stats:
    received: int = 0
    delays: list = field(default_factory=list)
    hops: int = 0
    blocked: int = 0
    energy: float = 0.0


class Router:
    LINK_ENERGY = 1.7e-12
    BUFFER_ENERGY = 0.6e-12

    def __init__(self, pos, depth):
        self.pos = pos
        self.depth = depth
        self.queue = deque()

    def full(self):
        return len(self.queue) >= self.depth

    def next_hop(self, packet):
        x, y = self.pos
        dx, dy = packet.dst
        if x != dx:
            return (x + (1 if dx > x else -1), y)
        return (x, y + (1 if dy > y else -1))


class TrafficGenerator:
    def __init__(self, params, nodes, rng):
        self.params = params
        self.nodes = nodes
        self.rng = rng

    def destination(self, src):
        if self.params.traffic == "transpose":
            return (src[1], src[0])
        while True:
            dst = self.nodes[self.rng.randrange(len(self.nodes))]
            if dst != src:
                return dst

    def shoot(self, src):
        return self.rng.random() < self.params.packet_injection_rate


class Noc:
    def __init__(self, params):
        self.params = params
        graph = nx.grid_2d_graph(params.mesh_dim_x, params.mesh_dim_y)
        self.nodes = sorted(graph.nodes)
        self.routers = {n: Router(n, params.buffer_depth) for n in self.nodes}
        self.rng = random.Random(params.rnd_generator_seed)
        self.traffic = TrafficGenerator(params, self.nodes, self.rng)
        self.stats = Stats()
        self.diameter = nx.diameter(graph)

    def inject(self, cycle):
        for node in self.nodes:
            if self.traffic.shoot(node):
                router = self.routers[node]
                if router.full():
                    self.stats.blocked += 1
                    continue
                router.queue.append(Packet(node, self.traffic.destination(node), cycle))

    def advance(self, cycle):
        moves = []
        for node in self.nodes:
            router = self.routers[node]
            if not router.queue:
                continue
            packet = router.queue[0]
            if packet.dst == node:
                router.queue.popleft()
                self.consume(packet, cycle)
                continue
            moves.append((node, router.next_hop(packet)))
        for node, nxt in moves:
            target = self.routers[nxt]
            if target.full():
                self.stats.blocked += 1
                continue
            packet = self.routers[node].queue.popleft()
            packet.hops += 1
            target.queue.append(packet)
            self.stats.energy += Router.LINK_ENERGY + Router.BUFFER_ENERGY

    def consume(self, packet, cycle):
        if packet.born < self.params.warm_up:
            return
        self.stats.received += 1
        self.stats.delays.append(cycle - packet.born)
        self.stats.hops += packet.hops

    def run(self):
        for cycle in range(self.params.simulation_time):
            self.inject(cycle)
            self.advance(cycle)
            if cycle % 600 == 0:
                log.info("cycle %d", cycle)
        return self.stats


def summarise(params, stats):
    delays = np.array(stats.delays, float)
    cycles = params.simulation_time - params.warm_up
    return {
        "received_packets": stats.received,
        "global_average_delay": round(float(delays.mean()), 5),
        "max_delay": int(delays.max()),
        "p95_delay": float(np.percentile(delays, 95)),
        "throughput": round(stats.received / cycles, 6),
        "mean_hops": round(stats.hops / stats.received, 5),
        "blocked": stats.blocked,
        "energy_pj": round(stats.energy * 1e12, 3),
    }


def sweep(base, rates):
    rows = []
    for rate in rates:
        values = asdict(base)
        values["packet_injection_rate"] = rate
        params = GlobalParams(**values)
        stats = Noc(params).run()
        rows.append({"pir": rate, **summarise(params, stats)})
        log.info("rate %.3f done", rate)
    return rows


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--traffic", choices=["random", "transpose"], default="random")
    ap.add_argument("--rates", type=float, nargs="+", default=[0.01, 0.03, 0.05, 0.08])
    ap.add_argument("--out", default="noc_results")
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    rows = sweep(GlobalParams(traffic=args.traffic), args.rates)
    out = Path(args.out)
    out.mkdir(exist_ok=True)
    with open(out / "sweep.csv", "w", newline="") as fh:
        writer = csv.DictWriter(fh, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    (out / "sweep.json").write_text(json.dumps(rows, indent=1))
    for row in rows:
        print("% pir {pir}: packets {received_packets}, delay {global_average_delay}, "
              "throughput {throughput}".format(**row))


if __name__ == "__main__":
    main()
