#!/usr/bin/env python
"""Relative binding free energies along the edges of a ligand map.

Modelled on https://github.com/proteneer/timemachine/pull/983

Every edge of the map is simulated with Langevin dynamics over a few alchemical
windows, the free energy differences are estimated with BAR, and the edges are
closed to absolute values by weighted least squares.
"""
import argparse
import json
import logging
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

import numpy as np
import pandas as pd
import torch

logger = logging.getLogger("rbfe")
KT = 2.479


@dataclass(frozen=True)
class Ligand:
    name: str
    stiffness: float
    centre: float
    offset: float


@dataclass(frozen=True)
class Edge:
    mol_a: Ligand
    mol_b: Ligand
    core_size: int
    restraint: Optional[str] = None

    @property
    def label(self):
        return f"{self.mol_a.name}->{self.mol_b.name}"


@dataclass
class Settings:
    seed: int = 2023
    windows: int = 5
    walkers: int = 48
    steps: int = 160
    equil: int = 40
    step_size: float = 0.02


def make_ligands(n, seed):
    rng = np.random.default_rng(seed)
    return [Ligand(f"lig_{i:02d}", float(rng.uniform(8, 30)), float(rng.normal(0, 0.35)),
                   float(rng.normal(0, 4))) for i in range(n)]


def make_map(ligands, seed):
    """Star map with a few cycle-closing edges."""
    rng = random.Random(seed)
    hub = ligands[0]
    edges = [Edge(hub, l, rng.randint(12, 24)) for l in ligands[1:]]
    for _ in range(len(ligands) // 2):
        a, b = rng.sample(ligands[1:], 2)
        edges.append(Edge(a, b, rng.randint(12, 24)))
    return edges


class AlchemicalPotential:
    """Interpolates between the end states."""

    def __init__(self, edge: Edge):
        self.a, self.b = edge.mol_a, edge.mol_b

    def energy(self, x, lam):
        def state(m):
            d = x - m.centre
            return 0.5 * m.stiffness * d.pow(2).sum(-1) + 0.8 * torch.cos(3 * d).sum(-1) + m.offset
        return (1 - lam) * state(self.a) + lam * state(self.b)

    def force(self, x, lam):
        def grad(m):
            d = x - m.centre
            return m.stiffness * d - 2.4 * torch.sin(3 * d)
        return -((1 - lam) * grad(self.a) + lam * grad(self.b))


def edge_seed(edge: Edge, settings: Settings) -> int:
    key = (settings.seed, edge.mol_a.name, edge.mol_b.name, edge.core_size, edge.restraint)
    return hash(key) % (2 ** 31)  # cause


def run_window(potential, lam, settings, gen):
    """Overdamped Langevin dynamics, returns the samples after equilibration."""
    x = 0.3 * torch.randn(settings.walkers, 3, generator=gen, dtype=torch.float64)
    kept = []
    dt = settings.step_size / 10
    scale = (2 * KT * dt) ** 0.5
    for step in range(settings.steps):
        noise = torch.randn(x.shape, generator=gen, dtype=torch.float64)
        x = x + dt * potential.force(x, lam) + scale * noise
        if step >= settings.equil and step % 10 == 0:
            kept.append(x.clone())
    return torch.cat(kept)


def bar(forward, reverse, iterations=60):
    """Bennett acceptance ratio by bisection, work values in kT."""
    lo, hi = -60.0, 60.0
    for _ in range(iterations):
        mid = 0.5 * (lo + hi)
        f = torch.sigmoid(-(forward - mid)).sum() - torch.sigmoid(-(reverse + mid)).sum()
        if f > 0:
            hi = mid
        else:
            lo = mid
    return 0.5 * (lo + hi)


def simulate_edge(edge, settings):
    gen = torch.Generator().manual_seed(edge_seed(edge, settings))
    potential = AlchemicalPotential(edge)
    lambdas = np.linspace(0, 1, settings.windows)
    samples = [run_window(potential, float(l), settings, gen) for l in lambdas]
    total, parts = 0.0, []
    for i in range(len(lambdas) - 1):
        l0, l1 = float(lambdas[i]), float(lambdas[i + 1])
        fwd = (potential.energy(samples[i], l1) - potential.energy(samples[i], l0)) / KT
        rev = (potential.energy(samples[i + 1], l0) - potential.energy(samples[i + 1], l1)) / KT
        df = bar(fwd, rev) * KT
        parts.append(df)
        total += df
    return total, float(np.std(parts) / np.sqrt(len(parts)))


def close_map(ligands, rows):
    index = {l.name: i for i, l in enumerate(ligands)}
    a = np.zeros((len(rows) + 1, len(ligands)))
    b = np.zeros(len(rows) + 1)
    for k, row in enumerate(rows):
        a[k, index[row["a"]]], a[k, index[row["b"]]], b[k] = -1, 1, row["ddg"]
    a[-1, 0] = 1.0
    return np.linalg.lstsq(a, b, rcond=None)[0]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ligands", type=int, default=10)
    p.add_argument("--seed", type=int, default=Settings.seed)
    p.add_argument("--windows", type=int, default=Settings.windows)
    p.add_argument("--out", type=Path, default=Path("rbfe"))
    args = p.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    settings = Settings(seed=args.seed, windows=args.windows)
    args.out.mkdir(parents=True, exist_ok=True)

    ligands = make_ligands(args.ligands, args.seed)
    rows = []
    for edge in make_map(ligands, args.seed):
        t0 = time.time()
        ddg, err = simulate_edge(edge, settings)
        rows.append({"a": edge.mol_a.name, "b": edge.mol_b.name, "ddg": ddg, "err": err})
        logger.info("%s ddG %.3f +- %.3f kJ/mol (%.2fs)", edge.label, ddg, err, time.time() - t0)
    values = close_map(ligands, rows)
    pd.DataFrame(rows).to_csv(args.out / "edges.csv", index=False, float_format="%.6f")
    table = pd.DataFrame({"ligand": [l.name for l in ligands], "dg": values})
    table.to_csv(args.out / "ligands.csv", index=False, float_format="%.6f")
    best = table.sort_values("dg").iloc[0]
    summary = {"best": best.ligand, "dg": round(float(best.dg), 5), "spread": round(float(np.ptp(values)), 5)}
    (args.out / "summary.json").write_text(json.dumps(summary))
    print(table.round(3).to_string(index=False))
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
