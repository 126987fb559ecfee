"""Modelled on https://github.com/ideasman42/isect_segments-bentley_ottmann/pull/9
Cleans a digitised pipe network: finds crossings with a sweep line, snaps close ones and measures the result.
"""
import argparse
import csv
import json
import logging
import math
import random
from bisect import insort
from dataclasses import dataclass
from pathlib import Path

import networkx as nx

log = logging.getLogger("network")


@dataclass
class Settings:
    seed: int = 41
    n_trunk: int = 1400
    n_branch: int = 320
    width: float = 1000.0
    height: float = 600.0
    snap: float = 2.5
    out: str = "network"


class Segment:
    """A pipe piece from left to right, with a material and a diameter."""

    def __init__(self, sid, p0, p1, diameter):
        if p1 < p0:
            p0, p1 = p1, p0
        self.sid, self.p0, self.p1 = sid, p0, p1
        self.diameter = diameter

    @property
    def length(self):
        return math.dist(self.p0, self.p1)

    def __repr__(self):
        return f"Segment({self.sid})"


class Event:
    START, END = 0, 1

    def __init__(self, kind, point, segment):
        self.kind, self.point, self.segment = kind, point, segment

    def key(self):
        return (self.point[0], self.kind, self.segment.sid)

    def __lt__(self, other):
        return self.key() < other.key()


def digitise(cfg):
    """Long trunk mains across the map and shorter branches."""
    rnd = random.Random(cfg.seed)
    segments = []
    for _ in range(cfg.n_trunk):
        x0, x1 = rnd.uniform(0, cfg.width * 0.15), rnd.uniform(cfg.width * 0.8, cfg.width)
        y0 = rnd.uniform(0, cfg.height)
        y1 = min(cfg.height, max(0.0, y0 + rnd.gauss(0, 12)))
        segments.append(Segment(len(segments), (x0, y0), (x1, y1), rnd.choice([200, 250, 300, 400])))
    for _ in range(cfg.n_branch):
        x, y = rnd.uniform(0, cfg.width), rnd.uniform(0, cfg.height)
        a, length = rnd.uniform(-math.pi, math.pi), rnd.uniform(30, 160)
        end = (x + length * math.cos(a), y + length * math.sin(a))
        segments.append(Segment(len(segments), (x, y), end, rnd.choice([63, 90, 110, 160])))
    return segments


def crossing(a, b):
    (ax, ay), (bx, by) = a.p0, a.p1
    (cx, cy), (dx, dy) = b.p0, b.p1
    den = (bx - ax) * (dy - cy) - (by - ay) * (dx - cx)
    if abs(den) < 1e-12:
        return None
    t = ((cx - ax) * (dy - cy) - (cy - ay) * (dx - cx)) / den
    u = ((cx - ax) * (by - ay) - (cy - ay) * (bx - ax)) / den
    if 0 <= t <= 1 and 0 <= u <= 1:
        return (ax + t * (bx - ax), ay + t * (by - ay))
    return None


class SweepLine:
    """Moves over the events from left to right and keeps the segments that are open."""

    def __init__(self, segments):
        self.events = []
        for s in segments:
            insort(self.events, Event(Event.START, s.p0, s))
            insort(self.events, Event(Event.END, s.p1, s))
        self.active = set()
        self.max_active = 0

    def crossings(self):
        found = []
        for event in self.events:
            seg = event.segment
            if event.kind == Event.END:
                self.active.discard(seg)
                continue
            for other in self.active:  # cause
                point = crossing(seg, other)
                if point is not None:
                    found.append((point, seg, other))
            self.active.add(seg)
            self.max_active = max(self.max_active, len(self.active))
        return found


class Snapper:
    """Merges crossings closer than the tolerance into one node at their running mean."""

    def __init__(self, tolerance):
        self.tol = tolerance
        self.nodes = []
        self.cells = {}

    def _cell(self, p):
        return (int(p[0] // self.tol), int(p[1] // self.tol))

    def add(self, p):
        cx, cy = self._cell(p)
        best, best_d = None, self.tol
        for dx in (-1, 0, 1):
            for dy in (-1, 0, 1):
                for n in self.cells.get((cx + dx, cy + dy), ()):
                    d = math.dist(self.nodes[n][0], p)
                    if d < best_d:
                        best, best_d = n, d
        if best is None:
            self.nodes.append([p, 1])
            self.cells.setdefault((cx, cy), []).append(len(self.nodes) - 1)
            return len(self.nodes) - 1
        (x, y), k = self.nodes[best]
        old = self._cell((x, y))
        new = ((x * k + p[0]) / (k + 1), (y * k + p[1]) / (k + 1))
        self.nodes[best] = [new, k + 1]
        if self._cell(new) != old:
            self.cells[old].remove(best)
            self.cells.setdefault(self._cell(new), []).append(best)
        return best


def build_graph(found, cfg):
    snapper = Snapper(cfg.snap)
    on_segment = {}
    for point, a, b in found:
        node = snapper.add(point)
        for s in (a, b):
            on_segment.setdefault(s.sid, (s, []))[1].append(node)
    g = nx.Graph()
    for i, (p, k) in enumerate(snapper.nodes):
        g.add_node(i, x=p[0], y=p[1], merged=k)
    for sid in sorted(on_segment):
        seg, nodes = on_segment[sid]
        nodes = sorted(set(nodes), key=lambda n: (g.nodes[n]["x"], n))
        for u, v in zip(nodes, nodes[1:]):
            d = math.dist((g.nodes[u]["x"], g.nodes[u]["y"]), (g.nodes[v]["x"], g.nodes[v]["y"]))
            g.add_edge(u, v, length=d, diameter=seg.diameter)
    return g


def measure(g):
    total = math.fsum(d["length"] for _, _, d in g.edges(data=True))
    big = max(nx.connected_components(g), key=len)
    west = min(big, key=lambda n: g.nodes[n]["x"])
    dist = nx.single_source_dijkstra_path_length(g.subgraph(big), west, weight="length")
    return {
        "nodes": g.number_of_nodes(),
        "edges": g.number_of_edges(),
        "pipe_km": round(total / 1000, 6),
        "largest_component": len(big),
        "reach": round(max(dist.values()), 5),
        "merged_max": max(d for _, d in g.nodes(data="merged")),
    }


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--snap", type=float, default=Settings.snap)
    cfg = Settings(snap=ap.parse_args().snap)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")

    segments = digitise(cfg)
    total = sum(s.length for s in segments) / 1000
    print(f"{len(segments)} segments, {total:.4f} km")
    sweep = SweepLine(segments)
    found = sweep.crossings()
    log.info("at most %d open segments", sweep.max_active)
    print(f"{len(found)} crossings")
    g = build_graph(found, cfg)
    stats = measure(g)
    for k, v in stats.items():
        print(f"  {k}: {v}")

    out = Path(cfg.out)
    out.mkdir(exist_ok=True)
    with open(out / "nodes.csv", "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["node", "x", "y", "merged"])
        for n, d in g.nodes(data=True):
            w.writerow([n, f"{d['x']:.4f}", f"{d['y']:.4f}", d["merged"]])
    (out / "stats.json").write_text(json.dumps(stats, indent=1))


if __name__ == "__main__":
    main()
