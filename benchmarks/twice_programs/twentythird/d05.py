"""Drainage of a pore network on a cubic lattice.

Builds a network of pores and throats, assigns sizes from seeds by geometry
models, computes entry pressures and runs an invasion from one face. The
saturation curve and the pore table are written to text files.

Modelled on: https://github.com/PMEAL/OpenPNM/issues/818
"""
import heapq
import json
import logging

import numpy as np
from scipy import stats

logging.basicConfig(level=logging.INFO, format="%(asctime)s | %(message)s")
log = logging.getLogger("porenet")


class CubicNetwork:
    def __init__(self, shape, spacing):
        self.shape = shape
        self.spacing = spacing
        index = np.arange(np.prod(shape)).reshape(shape)
        pairs = [
            np.stack([index[:-1].ravel(), index[1:].ravel()], axis=1),
            np.stack([index[:, :-1].ravel(), index[:, 1:].ravel()], axis=1),
            np.stack([index[:, :, :-1].ravel(), index[:, :, 1:].ravel()], axis=1),
        ]
        self.conns = np.concatenate(pairs)
        self.inlets = index[0].ravel()
        self.outlets = index[-1].ravel()
        self.neighbours = [[] for _ in range(self.n_pores)]
        for t, (a, b) in enumerate(self.conns):
            self.neighbours[a].append((int(b), t))
            self.neighbours[b].append((int(a), t))

    @property
    def n_pores(self):
        return int(np.prod(self.shape))

    @property
    def n_throats(self):
        return len(self.conns)


class Geometry(dict):
    """Holds properties and the models that make them."""

    def __init__(self, network):
        super().__init__()
        self.network = network
        self.models = []

    def add_model(self, propname, model, **kwargs):
        self.models.append((propname, model, kwargs))
        self[propname] = model(self, **kwargs)
        log.info("%-18s %s", propname, model.__name__)

    def regenerate(self):
        for propname, model, kwargs in self.models:
            self[propname] = model(self, **kwargs)


def random_values(target, element, num_range=(0.0, 1.0), seed=None):
    """Uniform numbers for each pore or throat."""
    n = target.network.n_pores if element == "pore" else target.network.n_throats
    low, high = num_range
    np.random.seed(seed)  # cause
    return low + (high - low) * np.random.rand(n)


def weibull_diameter(target, seeds, shape, scale, loc):
    return stats.weibull_min.ppf(target[seeds], shape, loc=loc, scale=scale)


def throat_from_pores(target, prop, factor):
    conns = target.network.conns
    return factor * np.minimum(target[prop][conns[:, 0]], target[prop][conns[:, 1]])


def sphere_volume(target, prop):
    return np.pi / 6 * target[prop] ** 3


def washburn(target, prop, sigma, theta):
    return -4 * sigma * np.cos(np.radians(theta)) / target[prop]


def invade(network, entry_pressure):
    """Order in which the pores fill, with the pressure reached at each step."""
    filled = np.zeros(network.n_pores, dtype=bool)
    heap = [(0.0, int(p)) for p in network.inlets]
    heapq.heapify(heap)
    order, pressure, reached = [], [], 0.0
    while heap:
        p_entry, pore = heapq.heappop(heap)
        if filled[pore]:
            continue
        filled[pore] = True
        reached = max(reached, p_entry)
        order.append(pore)
        pressure.append(reached)
        for nb, throat in network.neighbours[pore]:
            if not filled[nb]:
                heapq.heappush(heap, (float(entry_pressure[throat]), nb))
    return np.array(order), np.array(pressure)


def saturation_curve(order, pressure, volume, n_points=25):
    grid = np.linspace(0, pressure.max(), n_points)
    cumulative = np.cumsum(volume[order]) / volume.sum()
    found = np.searchsorted(pressure, grid, side="right")
    return grid, np.where(found > 0, cumulative[np.maximum(found - 1, 0)], 0.0)


def breakthrough(network, order):
    outlets = set(network.outlets.tolist())
    for step, pore in enumerate(order):
        if int(pore) in outlets:
            return step
    return len(order)


def build_geometry(network):
    geo = Geometry(network)
    geo.add_model("pore.seed", random_values, element="pore", num_range=(0.05, 0.95))
    geo.add_model("pore.diameter", weibull_diameter, seeds="pore.seed", shape=1.8, scale=2.2e-5, loc=5e-6)
    geo.add_model("pore.volume", sphere_volume, prop="pore.diameter")
    geo.add_model("throat.diameter", throat_from_pores, prop="pore.diameter", factor=0.6)
    geo.add_model("throat.entry", washburn, prop="throat.diameter", sigma=0.48, theta=140)
    return geo


def main():
    np.random.seed(10)
    network = CubicNetwork((30, 30, 30), spacing=5e-5)
    log.info("%d pores, %d throats", network.n_pores, network.n_throats)
    geo = build_geometry(network)
    order, pressure = invade(network, geo["throat.entry"])
    grid, sat = saturation_curve(order, pressure, geo["pore.volume"])
    step = breakthrough(network, order)
    porosity = geo["pore.volume"].sum() / (network.n_pores * network.spacing ** 3)
    with open("curve.txt", "w") as fh:
        for p, s in zip(grid, sat):
            fh.write(f"{p:.2f}\t{s:.6f}\n")
    np.savetxt("pores.txt", np.column_stack([geo["pore.seed"], geo["pore.diameter"] * 1e6]),
               fmt="%.6f", header="seed diameter_um")
    with open("summary.json", "w") as fh:
        json.dump({"porosity": float(porosity), "breakthrough_step": int(step),
                   "breakthrough_pressure": float(pressure[step])}, fh, indent=2)
    print("pores: %d  throats: %d" % (network.n_pores, network.n_throats))
    print("porosity: %.6f" % porosity)
    print("mean diameter: %.4f um" % (geo["pore.diameter"].mean() * 1e6))
    print("breakthrough after %d pores at %.1f Pa" % (step, pressure[step]))
    for p, s in list(zip(grid, sat))[::6]:
        print("  %9.1f Pa  %.5f" % (p, s))


if __name__ == "__main__":
    main()
