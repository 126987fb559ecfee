"""Erosion risk from the tile maps."""
import numpy as np


def classify(grid):
    score = (2.0 * grid["slope_p95"] / grid["slope_p95"].mean() + grid["wetness"] / grid["wetness"].mean()
             + 0.5 * grid["roughness"] / grid["roughness"].mean())
    return np.digitize(score, np.quantile(score, [0.5, 0.8]))


def moran(x):
    z = x - x.mean()
    num = (z[:, 1:] * z[:, :-1]).sum() + (z[1:] * z[:-1]).sum()
    cnt = z[:, 1:].size + z[1:].size
    return float(num / cnt / (z ** 2).mean())


def summarise(risk, basin, grid):
    rows = []
    for b in range(basin.max() + 1):
        m = basin == b
        rows.append({"id": b, "tiles": int(m.sum()), "mean_slope": float(grid["slope"][m].mean()),
                     "mean_elevation": float(grid["elevation"][m].mean()),
                     "high_risk": float((risk[m] == 2).mean())})
    return {"catchments": rows, "moran_slope": moran(grid["slope"]), "moran_elevation": moran(grid["elevation"])}
