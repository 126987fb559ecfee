"""Anneal a binary alloy with canonical Monte Carlo and report order parameters.

Modelled on https://github.com/CederGroupHub/smol/issues/197
An annealing study: starting configurations come from a seed given in the config, the kernels do swaps.
"""
import argparse
import csv
import json
import logging
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from p03_moca import BinaryEnsemble, Metropolis, Sampler

logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("anneal")


@dataclass
class AnnealConfig:
    seed: int = 11
    size: int = 16
    composition: float = 0.5
    first_neighbour: float = 0.6
    second_neighbour: float = -0.2
    field: float = 0.0
    temperatures: tuple = (4.0, 3.0, 2.2, 1.6, 1.1)
    steps: int = 3000
    thin: int = 25
    discard: int = 40
    output: str = "anneal_out"


def initial_occupancy(cfg):
    rng = np.random.default_rng(cfg.seed)
    n = cfg.size * cfg.size
    occ = -np.ones(n)
    occ[rng.choice(n, int(round(cfg.composition * n)), replace=False)] = 1
    return occ


def short_range_order(occ, size):
    """Warren-Cowley parameter for the first shell."""
    grid = occ.reshape(size, size)
    unlike = 0.5 * ((grid != np.roll(grid, 1, 0)).mean() + (grid != np.roll(grid, 1, 1)).mean())
    x = (occ > 0).mean()
    return float(1 - unlike / (2 * x * (1 - x)))


def staggered(occ, size):
    i, j = np.indices((size, size))
    return float(abs((occ.reshape(size, size) * (1 - 2 * ((i + j) % 2))).mean()))


def cluster_sizes(occ, size):
    """Sizes of connected same-species domains, largest first."""
    grid = occ.reshape(size, size)
    seen = np.zeros_like(grid, dtype=bool)
    sizes = []
    for i in range(size):
        for j in range(size):
            if seen[i, j]:
                continue
            stack, count = [(i, j)], 0
            seen[i, j] = True
            while stack:
                a, b = stack.pop()
                count += 1
                for da, db in ((1, 0), (-1, 0), (0, 1), (0, -1)):
                    c, d = (a + da) % size, (b + db) % size
                    if not seen[c, d] and grid[c, d] == grid[a, b]:
                        seen[c, d] = True
                        stack.append((c, d))
            sizes.append(count)
    return sorted(sizes, reverse=True)


def anneal(cfg):
    ensemble = BinaryEnsemble(cfg.size, cfg.first_neighbour, cfg.second_neighbour, cfg.field)
    kernel = Metropolis(ensemble, cfg.temperatures[0])
    sampler = Sampler(ensemble, kernel)
    occ = initial_occupancy(cfg)
    log.info("start energy per site %.4f", ensemble.energy(occ) / ensemble.num_sites)
    rows = []
    for temperature in cfg.temperatures:
        start = time.perf_counter()
        kernel.set_temperature(temperature)
        occ = sampler.run(occ, cfg.steps, cfg.thin)
        rows.append({
            "temperature": temperature,
            "energy": round(sampler.mean_energy(cfg.discard), 6),
            "heat_capacity": round(sampler.heat_capacity(cfg.discard, temperature), 6),
            "acceptance": round(kernel.acceptance, 4),
            "sro": round(short_range_order(occ, cfg.size), 5),
            "staggered": round(staggered(occ, cfg.size), 5),
            "largest_domain": cluster_sizes(occ, cfg.size)[0],
        })
        log.info("T=%.2f done in %.2fs", temperature, time.perf_counter() - start)
    return occ, rows


def write(cfg, occ, rows):
    out = Path(cfg.output)
    out.mkdir(exist_ok=True)
    with open(out / "anneal.csv", "w", newline="") as fh:
        w = csv.DictWriter(fh, fieldnames=list(rows[0]))
        w.writeheader()
        w.writerows(rows)
    grid = occ.reshape(cfg.size, cfg.size)
    (out / "final.txt").write_text(
        "\n".join("".join("A" if v > 0 else "b" for v in r) for r in grid) + "\n")
    (out / "config.json").write_text(json.dumps(asdict(cfg), indent=1))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=AnnealConfig.seed)
    ap.add_argument("--steps", type=int, default=AnnealConfig.steps)
    args = ap.parse_args()
    cfg = AnnealConfig(seed=args.seed, steps=args.steps)
    occ, rows = anneal(cfg)
    write(cfg, occ, rows)
    print("    T   energy      C    accept    sro")
    for r in rows:
        print(f"{r['temperature']:5.2f} {r['energy']:9.5f} {r['heat_capacity']:8.4f} "
              f"{r['acceptance']:7.4f} {r['sro']:8.4f}")


if __name__ == "__main__":
    main()
