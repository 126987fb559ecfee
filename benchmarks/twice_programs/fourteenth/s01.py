"""Conformer search for small molecules and a shape-descriptor model.

Modelled on https://github.com/rdkit/rdkit/issues/2575
Embeds molecules by distance geometry, relaxes them and regresses a property on shape descriptors.
"""
import argparse
import json
import logging
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import KFold, cross_val_predict

log = logging.getLogger("conformers")


@dataclass
class Molecule:
    name: str
    bonds: list
    n_atoms: int
    rings: int = 0
    conformers: list = field(default_factory=list)


@dataclass
class EmbedParameters:
    random_seed: int = 0
    n_conformers: int = 4
    bond_length: float = 1.5
    repulsion: float = 0.4
    max_iterations: int = 25


def chain(name, length, branches=(), ring=None):
    bonds = [(i, i + 1) for i in range(length - 1)]
    n = length
    for at in branches:
        bonds.append((at, n))
        n += 1
    rings = 0
    if ring:
        bonds.append(ring)
        rings = 1
    return Molecule(name, bonds, n, rings)


def build_library(n, seed):
    rng = np.random.default_rng(seed)
    library = []
    for k in range(n):
        length = int(rng.integers(5, 11))
        branches = tuple(int(b) for b in rng.integers(0, length, size=int(rng.integers(0, 3))))
        ring = (0, 5) if length > 5 and rng.random() < 0.4 else None
        library.append(chain(f"mol{k:03d}", length, branches, ring))
    return library


class Embedder:
    """Distance-geometry embedding with a steric relaxation."""

    def __init__(self, params: EmbedParameters):
        self.params = params
        self.rng = np.random.default_rng(params.random_seed or None)  # cause

    def _energy(self, flat, bonds, n):
        xyz = flat.reshape(n, 3)
        p = self.params
        grad = np.zeros_like(xyz)
        i, j = bonds[:, 0], bonds[:, 1]
        d = xyz[i] - xyz[j]
        r = np.linalg.norm(d, axis=1) + 1e-9
        e = np.sum((r - p.bond_length) ** 2)
        g = (2 * (r - p.bond_length) / r)[:, None] * d
        np.add.at(grad, i, g)
        np.add.at(grad, j, -g)
        diff = xyz[:, None] - xyz[None]
        r2 = (diff ** 2).sum(-1) + np.eye(n)
        inv = p.repulsion / r2
        np.fill_diagonal(inv, 0.0)
        e += inv.sum()
        grad += (-4 * (inv / r2)[..., None] * diff).sum(1)
        return e, grad.ravel()

    def embed(self, mol):
        bonds = np.array(mol.bonds)
        for _ in range(self.params.n_conformers):
            start = self.rng.normal(scale=2.0, size=(mol.n_atoms, 3))
            res = minimize(self._energy, start.ravel(), args=(bonds, mol.n_atoms), jac=True,
                           method="L-BFGS-B", options={"maxiter": self.params.max_iterations})
            mol.conformers.append((float(res.fun), res.x.reshape(-1, 3)))
        mol.conformers.sort(key=lambda c: c[0])
        return mol


def shape_descriptors(xyz):
    centred = xyz - xyz.mean(0)
    inertia = np.linalg.eigvalsh(centred.T @ centred)
    gyration = float(np.sqrt((centred ** 2).sum(1).mean()))
    return {
        "npr1": float(inertia[0] / inertia[2]),
        "npr2": float(inertia[1] / inertia[2]),
        "rg": gyration,
        "pbf": float(np.sqrt(inertia[0] / len(xyz))),
    }


def featurize(library):
    rows = []
    for mol in library:
        energy, xyz = mol.conformers[0]
        rows.append({"name": mol.name, "n_atoms": mol.n_atoms, "rings": mol.rings,
                     "energy": energy, **shape_descriptors(xyz)})
    return pd.DataFrame(rows).set_index("name")


def target(library):
    rng = np.random.default_rng(99)
    return np.array([0.6 * m.n_atoms - 1.4 * m.rings + rng.normal(scale=0.2) for m in library])


def evaluate(table, y):
    model = GradientBoostingRegressor(n_estimators=80, max_depth=3, random_state=3)
    folds = KFold(5, shuffle=True, random_state=4)
    pred = cross_val_predict(model, table.values, y, cv=folds)
    return pred, float(np.sqrt(np.mean((pred - y) ** 2)))


def main(argv=None):
    ap = argparse.ArgumentParser()
    ap.add_argument("--molecules", type=int, default=60)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--out", type=Path, default=Path("conformers"))
    args = ap.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    log.info("pid %d", os.getpid())

    t0 = time.perf_counter()
    library = build_library(args.molecules, seed=17)
    embedder = Embedder(EmbedParameters(random_seed=args.seed))
    for mol in library:
        embedder.embed(mol)
    log.info("embedded %d molecules in %.2f s", len(library), time.perf_counter() - t0)

    table = featurize(library)
    y = target(library)
    pred, rmse = evaluate(table, y)
    args.out.mkdir(exist_ok=True)
    table.assign(y=y, pred=pred).round(6).to_csv(args.out / "descriptors.csv")
    (args.out / "report.json").write_text(json.dumps({"rmse": round(rmse, 8), "seed": args.seed}))
    print(f"rmse {rmse:.6f}")
    print(table[["npr1", "npr2", "pbf"]].mean().round(5).to_string())


if __name__ == "__main__":
    main()
