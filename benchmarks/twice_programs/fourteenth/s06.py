"""Macro placement by simulated annealing.

Modelled on https://github.com/partcleda/macro-place-challenge-2026/issues/83
Places macro blocks on a chip so that wire length, overlap and congestion are small.
"""
import argparse
import json
import logging
import random
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

log = logging.getLogger("placer")


@dataclass
class PlacerConfig:
    seed: int = 11
    macros: int = 40
    nets: int = 120
    die: float = 100.0
    budget_s: float = 1.6
    t_start: float = 30.0
    t_end: float = 0.05
    overlap_weight: float = 4.0


@dataclass
class Netlist:
    sizes: np.ndarray
    nets: list


def make_netlist(cfg):
    rng = np.random.default_rng(cfg.seed)
    sizes = rng.uniform(5, 14, size=(cfg.macros, 2)).round(1)
    nets = [sorted(rng.choice(cfg.macros, size=int(rng.integers(2, 6)), replace=False).tolist())
            for _ in range(cfg.nets)]
    return Netlist(sizes, nets)


class Cost:
    def __init__(self, netlist, cfg):
        self.netlist = netlist
        self.cfg = cfg
        self.by_macro = [[] for _ in range(len(netlist.sizes))]
        for k, net in enumerate(netlist.nets):
            for m in net:
                self.by_macro[m].append(k)

    def net_length(self, pos, k):
        xs = [pos[m][0] for m in self.netlist.nets[k]]
        ys = [pos[m][1] for m in self.netlist.nets[k]]
        return max(xs) - min(xs) + max(ys) - min(ys)

    def overlap(self, pos, m):
        w, h = self.netlist.sizes[m]
        x, y = pos[m]
        total = 0.0
        for other, (ox, oy) in enumerate(pos):
            if other == m:
                continue
            ow, oh = self.netlist.sizes[other]
            dx = (w + ow) / 2 - abs(x - ox)
            dy = (h + oh) / 2 - abs(y - oy)
            if dx > 0 and dy > 0:
                total += dx * dy
        return total

    def local(self, pos, m):
        wires = sum(self.net_length(pos, k) for k in self.by_macro[m])
        return wires + self.cfg.overlap_weight * self.overlap(pos, m)

    def total(self, pos):
        wires = sum(self.net_length(pos, k) for k in range(len(self.netlist.nets)))
        over = sum(self.overlap(pos, m) for m in range(len(pos))) / 2
        return wires, over


class Annealer:
    def __init__(self, netlist, cfg):
        self.cfg = cfg
        self.netlist = netlist
        self.cost = Cost(netlist, cfg)
        self.rng = random.Random(cfg.seed)

    def initial(self):
        d = self.cfg.die
        return [[self.rng.uniform(0, d), self.rng.uniform(0, d)] for _ in range(self.cfg.macros)]

    def temperature(self, done):
        return self.cfg.t_start * (self.cfg.t_end / self.cfg.t_start) ** done

    def propose(self, pos, m, temp):
        reach = max(1.0, self.cfg.die * 0.5 * temp / self.cfg.t_start)
        x = min(max(pos[m][0] + self.rng.gauss(0, reach), 0.0), self.cfg.die)
        y = min(max(pos[m][1] + self.rng.gauss(0, reach), 0.0), self.cfg.die)
        return [x, y]

    def step(self, pos, temp):
        m = self.rng.randrange(self.cfg.macros)
        before = self.cost.local(pos, m)
        old = pos[m]
        pos[m] = self.propose(pos, m, temp)
        delta = self.cost.local(pos, m) - before
        if delta > 0 and self.rng.random() >= np.exp(-delta / temp):
            pos[m] = old
            return False
        return True

    def run(self):
        pos = self.initial()
        moves = accepted = 0
        start = time.perf_counter()
        done = 0.0
        while done < 1.0:
            temp = self.temperature(done)
            for _ in range(50):
                accepted += self.step(pos, temp)
            moves += 50
            done = (time.perf_counter() - start) / self.cfg.budget_s  # cause
        log.info("%d moves, %.1f%% accepted", moves, 100 * accepted / moves)
        return pos


def plot(netlist, pos, cfg, path):
    fig, ax = plt.subplots(figsize=(4, 4))
    for (w, h), (x, y) in zip(netlist.sizes, pos):
        ax.add_patch(plt.Rectangle((x - w / 2, y - h / 2), w, h, fill=False))
    ax.set_xlim(-10, cfg.die + 10)
    ax.set_ylim(-10, cfg.die + 10)
    fig.savefig(path, dpi=60)
    plt.close(fig)


def congestion(pos, netlist, cfg, bins=8):
    grid = np.zeros((bins, bins))
    for net in netlist.nets:
        pts = np.array([pos[m] for m in net])
        lo = np.clip((pts.min(0) / cfg.die * bins).astype(int), 0, bins - 1)
        hi = np.clip((pts.max(0) / cfg.die * bins).astype(int), 0, bins - 1)
        grid[lo[1]:hi[1] + 1, lo[0]:hi[0] + 1] += 1
    return grid


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--budget", type=float, default=PlacerConfig.budget_s)
    ap.add_argument("--seed", type=int, default=PlacerConfig.seed)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO)
    cfg = PlacerConfig(seed=args.seed, budget_s=args.budget)
    netlist = make_netlist(cfg)
    annealer = Annealer(netlist, cfg)
    pos = annealer.run()
    wires, over = annealer.cost.total(pos)
    grid = congestion(pos, netlist, cfg)
    out = Path("placement")
    out.mkdir(exist_ok=True)
    with open(out / "macros.pl", "w") as fh:
        for m, (x, y) in enumerate(pos):
            fh.write(f"m{m:02d} {x:.4f} {y:.4f}\n")
    plot(netlist, pos, cfg, out / "placement.png")
    score = {"hpwl": round(wires, 4), "overlap": round(over, 4), "peak": int(grid.max())}
    (out / "score.json").write_text(json.dumps(score))
    print("score", score)


if __name__ == "__main__":
    main()
