"""Slope, roughness and flow accumulation of one tile (with a one-cell rim)."""
import numpy as np
from scipy import ndimage

CELL = 30.0
NEIGH = [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)]


def slope(z):
    dzdx = ((z[:-2, 2:] + 2 * z[1:-1, 2:] + z[2:, 2:]) - (z[:-2, :-2] + 2 * z[1:-1, :-2] + z[2:, :-2])) / (8 * CELL)
    dzdy = ((z[2:, :-2] + 2 * z[2:, 1:-1] + z[2:, 2:]) - (z[:-2, :-2] + 2 * z[:-2, 1:-1] + z[:-2, 2:])) / (8 * CELL)
    return np.arctan(np.hypot(dzdx, dzdy))


def roughness(z, k=5):
    m = ndimage.uniform_filter(z, k)
    v = ndimage.uniform_filter(z * z, k) - m * m
    return np.sqrt(np.maximum(v, 0))


def flow_accumulation(z, sweeps=60):
    """Multiple-flow-direction accumulation by repeated sweeps."""
    n, m = z.shape
    weights = []
    for dy, dx in NEIGH:
        drop = z - np.roll(z, (-dy, -dx), axis=(0, 1))
        w = np.maximum(drop, 0) / np.hypot(dy, dx)
        weights.append(w)
    total = np.sum(weights, axis=0)
    weights = [np.where(total > 0, w / np.where(total > 0, total, 1), 0) for w in weights]
    acc = np.ones((n, m))
    for _ in range(sweeps):
        inflow = np.ones((n, m))
        for (dy, dx), w in zip(NEIGH, weights):
            inflow += np.roll(acc * w, (dy, dx), axis=(0, 1))
        acc = inflow
    return acc[1:-1, 1:-1]


def tile_statistics(z):
    s = slope(z)
    acc = flow_accumulation(z)
    wet = np.log(acc / np.tan(np.maximum(s, 1e-3)))
    return {"slope": float(s.mean()), "slope_p95": float(np.quantile(s, 0.95)),
            "roughness": float(roughness(z)[1:-1, 1:-1].mean()),
            "wetness": float(wet.mean()), "elevation": float(z[1:-1, 1:-1].mean())}
