"""Shock-tube hydrodynamics with a registered-field data manager.

Modelled on https://github.com/laristra/flecsi/issues/119
Integrates the one-dimensional Euler equations with perturbed initial fields and writes the state.
"""
import argparse
import json
import logging
import time
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

log = logging.getLogger("hydro")


@dataclass
class HydroConfig:
    seed: int = 71
    cells: int = 400
    gamma: float = 1.4
    cfl: float = 0.4
    end_time: float = 0.18
    perturbation: float = 0.02
    meshes: int = 3


class Mesh:
    def __init__(self, name, cells):
        self.name = name
        self.cells = cells
        self.dx = 1.0 / cells
        self.x = (np.arange(cells) + 0.5) * self.dx


class DataManager:
    """Keeps the state of all clients in one map from hashed key to field."""

    def __init__(self):
        self._data = {}

    @staticmethod
    def key(client, label):
        return hash((id(client), label))  # cause

    def register_state(self, client, label):
        self._data[self.key(client, label)] = (client, label, np.zeros(client.cells))

    def get(self, client, label):
        return self._data[self.key(client, label)][2]

    def states(self):
        for key in sorted(self._data):
            yield self._data[key]


FIELDS = ["density", "momentum", "total_energy"]


class Hydro:
    def __init__(self, cfg):
        self.cfg = cfg
        self.manager = DataManager()
        self.meshes = [Mesh(f"tube{k}", cfg.cells) for k in range(cfg.meshes)]
        for mesh in self.meshes:
            for label in FIELDS:
                self.manager.register_state(mesh, label)

    def initialise(self):
        for k, mesh in enumerate(self.meshes):
            left = mesh.x < 0.4 + 0.05 * k
            rho = np.where(left, 1.0, 0.125)
            pressure = np.where(left, 1.0, 0.1)
            self.manager.get(mesh, "density")[:] = rho
            self.manager.get(mesh, "total_energy")[:] = pressure / (self.cfg.gamma - 1)
        self.perturb()

    def perturb(self):
        rng = np.random.default_rng(self.cfg.seed)
        for client, label, values in self.manager.states():
            noise = rng.normal(size=client.cells)
            smooth = np.convolve(noise, np.ones(9) / 9, mode="same")
            values += self.cfg.perturbation * smooth * max(values.mean(), 0.2)

    def primitive(self, u):
        rho, mom, energy = u
        velocity = mom / rho
        pressure = (self.cfg.gamma - 1) * (energy - 0.5 * rho * velocity ** 2)
        return rho, velocity, np.maximum(pressure, 1e-8)

    def flux(self, u):
        rho, velocity, pressure = self.primitive(u)
        return np.stack([rho * velocity, rho * velocity ** 2 + pressure,
                         (u[2] + pressure) * velocity])

    def step(self, u, dx, limit):
        rho, velocity, pressure = self.primitive(u)
        speed = np.abs(velocity) + np.sqrt(self.cfg.gamma * pressure / rho)
        dt = min(self.cfg.cfl * dx / speed.max(), limit)
        padded = np.concatenate([u[:, :1], u, u[:, -1:]], axis=1)
        smax = np.concatenate([speed[:1], speed, speed[-1:]])
        f = self.flux(padded)
        a = np.maximum(smax[:-1], smax[1:])
        face = 0.5 * (f[:, :-1] + f[:, 1:]) - 0.5 * a * (padded[:, 1:] - padded[:, :-1])
        return u - dt / dx * (face[:, 1:] - face[:, :-1]), dt

    def advance(self, mesh):
        u = np.stack([self.manager.get(mesh, label) for label in FIELDS])
        t, steps = 0.0, 0
        while t < self.cfg.end_time - 1e-12:
            u, dt = self.step(u, mesh.dx, self.cfg.end_time - t)
            t += dt
            steps += 1
        for label, values in zip(FIELDS, u):
            self.manager.get(mesh, label)[:] = values
        return steps


def diagnostics(hydro):
    rows = []
    for mesh in hydro.meshes:
        u = np.stack([hydro.manager.get(mesh, label) for label in FIELDS])
        rho, velocity, pressure = hydro.primitive(u)
        front = mesh.x[np.argmax(np.abs(np.diff(rho)))]
        rows.append({"mesh": mesh.name, "mass": float(rho.sum() * mesh.dx),
                     "energy": float(u[2].sum() * mesh.dx), "max_velocity": float(velocity.max()),
                     "front": float(front), "min_pressure": float(pressure.min())})
    return rows


def dump(hydro, path):
    with h5py.File(path, "w") as fh:
        for mesh in hydro.meshes:
            group = fh.create_group(mesh.name)
            for label in FIELDS:
                group[label] = hydro.manager.get(mesh, label)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--cells", type=int, default=3000)
    ap.add_argument("--end-time", type=float, default=HydroConfig.end_time)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO)
    cfg = HydroConfig(cells=args.cells, end_time=args.end_time)
    hydro = Hydro(cfg)
    hydro.initialise()
    for mesh in hydro.meshes:
        t0 = time.perf_counter()
        steps = hydro.advance(mesh)
        log.info("%s: %d steps in %.2f s", mesh.name, steps, time.perf_counter() - t0)
    rows = diagnostics(hydro)
    dump(hydro, "state.h5")
    Path("diagnostics.json").write_text(json.dumps(rows, indent=1))
    for row in rows:
        print({k: round(v, 8) if isinstance(v, float) else v for k, v in row.items()})


if __name__ == "__main__":
    main()
