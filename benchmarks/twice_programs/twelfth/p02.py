"""Grid router for small boards: negotiated A* over nets, with a congestion report.

Modelled on https://github.com/rjwalters/kicad-tools/issues/3799
The router orders nets by a seeded shuffle and routes each of them by A* with a per-net limit.
"""
import argparse
import csv
import heapq
import json
import logging
import random
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="[%(levelname)s] %(message)s")
log = logging.getLogger("router")

NEIGHBOURS = ((1, 0), (-1, 0), (0, 1), (0, -1))


@dataclass
class RouterConfig:
    seed: int = 42
    width: int = 150
    height: int = 110
    nets: int = 26
    obstacles: int = 230
    passes: int = 2
    per_net_timeout: float = 0.03
    congestion_cost: float = 3.0
    turn_cost: float = 0.4


@dataclass
class Net:
    name: str
    source: tuple
    target: tuple
    path: list = field(default_factory=list)
    complete: bool = False
    expanded: int = 0


class Board:
    def __init__(self, cfg):
        self.cfg = cfg
        rng = random.Random(cfg.seed)
        self.blocked = set()
        for _ in range(cfg.obstacles):
            x, y = rng.randrange(cfg.width), rng.randrange(cfg.height)
            w, h = rng.randint(1, 7), rng.randint(1, 5)
            for dx in range(w):
                for dy in range(h):
                    self.blocked.add((x + dx, y + dy))
        self.nets = []
        pads = set()
        while len(self.nets) < cfg.nets:
            a, b = self._pad(rng, pads), self._pad(rng, pads)
            if abs(a[0] - b[0]) + abs(a[1] - b[1]) < 50:
                continue
            pads.update((a, b))
            self.nets.append(Net(f"N{len(self.nets):02d}", a, b))
        self.usage = {}

    def _pad(self, rng, pads):
        while True:
            p = (rng.randrange(self.cfg.width), rng.randrange(self.cfg.height))
            if p not in self.blocked and p not in pads:
                return p

    def inside(self, x, y):
        return 0 <= x < self.cfg.width and 0 <= y < self.cfg.height

    def occupy(self, net):
        for cell in net.path:
            self.usage[cell] = self.usage.get(cell, 0) + 1

    def release(self, net):
        for cell in net.path:
            self.usage[cell] -= 1
        net.path = []


class Router:
    def __init__(self, board, cfg):
        self.board, self.cfg = board, cfg
        self.rng = random.Random(cfg.seed + 1)

    def route_net(self, net):
        """A* from source to target; keeps the best partial path if it is cut off."""
        cfg, board = self.cfg, self.board
        tx, ty = net.target
        counter = 0
        heap = [(abs(net.source[0] - tx) + abs(net.source[1] - ty), 0, net.source, 0, (0, 0))]
        cost = {net.source: 0.0}
        parent = {net.source: None}
        best, best_h = net.source, heap[0][0]
        deadline = time.perf_counter() + cfg.per_net_timeout
        while heap:
            if time.perf_counter() > deadline:  # cause
                break
            _, _, cell, g, heading = heapq.heappop(heap)
            if g > cost[cell]:
                continue
            net.expanded += 1
            h = abs(cell[0] - tx) + abs(cell[1] - ty)
            if h < best_h:
                best, best_h = cell, h
            if cell == net.target:
                best = cell
                break
            for step in NEIGHBOURS:
                nx, ny = cell[0] + step[0], cell[1] + step[1]
                if not board.inside(nx, ny) or (nx, ny) in board.blocked:
                    continue
                ng = g + 1 + cfg.congestion_cost * board.usage.get((nx, ny), 0)
                if step != heading and heading != (0, 0):
                    ng += cfg.turn_cost
                if ng < cost.get((nx, ny), float("inf")):
                    cost[(nx, ny)] = ng
                    parent[(nx, ny)] = cell
                    counter += 1
                    f = ng + abs(nx - tx) + abs(ny - ty)
                    heapq.heappush(heap, (f, counter, (nx, ny), ng, step))
        net.complete = best == net.target
        path = []
        while best is not None:
            path.append(best)
            best = parent[best]
        net.path = path[::-1]

    def run(self):
        for number in range(self.cfg.passes):
            order = list(self.board.nets)
            self.rng.shuffle(order)
            start = time.perf_counter()
            for net in order:
                self.board.release(net)
                self.route_net(net)
                self.board.occupy(net)
            done = sum(n.complete for n in order)
            log.info("pass %d: %d/%d nets complete (%.2fs)", number, done, len(order),
                     time.perf_counter() - start)


def segments(path):
    """Merge collinear steps into straight segments."""
    result = []
    for a, b in zip(path, path[1:]):
        d = (b[0] - a[0], b[1] - a[1])
        if result and result[-1][2] == d:
            result[-1] = (result[-1][0], b, d)
        else:
            result.append((a, b, d))
    return result


def report(board, out):
    with open(out / "segments.csv", "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["net", "x1", "y1", "x2", "y2"])
        for net in board.nets:
            for a, b, _ in segments(net.path):
                w.writerow([net.name, *a, *b])
    summary = {
        "complete": sum(n.complete for n in board.nets),
        "copper": sum(max(len(n.path) - 1, 0) for n in board.nets),
        "segments": sum(len(segments(n.path)) for n in board.nets),
        "conflicts": sum(1 for v in board.usage.values() if v > 1),
        "expanded": sum(n.expanded for n in board.nets),
    }
    (out / "summary.json").write_text(json.dumps(summary, indent=1))
    return summary


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=42)
    ap.add_argument("--passes", type=int, default=2)
    ap.add_argument("--out", default="routed")
    args = ap.parse_args()
    cfg = RouterConfig(seed=args.seed, passes=args.passes)
    out = Path(args.out)
    out.mkdir(exist_ok=True)
    board = Board(cfg)
    log.info("board %dx%d with %d nets", cfg.width, cfg.height, cfg.nets)
    Router(board, cfg).run()
    for net in board.nets:
        print(f"{net.name} {'ok  ' if net.complete else 'open'} length={len(net.path) - 1}")
    for key, value in report(board, out).items():
        print(f"{key}: {value}")


if __name__ == "__main__":
    main()
