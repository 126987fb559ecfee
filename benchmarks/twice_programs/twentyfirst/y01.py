"""Regression suite for the scalar smoothing of surface meshes.

Builds a small set of closed triangle meshes, smooths scalar fields that live
on their vertices with a Gaussian kernel, compares the fast neighbour-list
implementation with the slow reference one and writes the report that the
nightly job collects (regression_report.json, smoothed.npz).

Modelled on: https://github.com/gattia/pymskt/issues/57
"""
import json
import logging
import sys
import time
import unittest
from datetime import datetime

import numpy as np
from scipy.spatial import cKDTree

logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("smooth-tests")

RTOL = 1e-4
ATOL = 1e-5


# --------------------------------------------------------------------------
# meshes
# --------------------------------------------------------------------------
class Mesh:
    def __init__(self, points, triangles, name):
        self.points = np.asarray(points, dtype=float)
        self.triangles = np.asarray(triangles, dtype=int)
        self.name = name
        self.scalars = {}

    @property
    def n_points(self):
        return len(self.points)

    def edges(self):
        t = self.triangles
        e = np.concatenate([t[:, [0, 1]], t[:, [1, 2]], t[:, [2, 0]]])
        e.sort(axis=1)
        return np.unique(e, axis=0)

    def area(self):
        a, b, c = (self.points[self.triangles[:, i]] for i in range(3))
        return 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1).sum()


def icosphere(level, radius=1.0):
    g = (1 + 5 ** 0.5) / 2
    pts = [(-1, g, 0), (1, g, 0), (-1, -g, 0), (1, -g, 0), (0, -1, g), (0, 1, g),
           (0, -1, -g), (0, 1, -g), (g, 0, -1), (g, 0, 1), (-g, 0, -1), (-g, 0, 1)]
    tris = [(0, 11, 5), (0, 5, 1), (0, 1, 7), (0, 7, 10), (0, 10, 11), (1, 5, 9), (5, 11, 4),
            (11, 10, 2), (10, 7, 6), (7, 1, 8), (3, 9, 4), (3, 4, 2), (3, 2, 6), (3, 6, 8),
            (3, 8, 9), (4, 9, 5), (2, 4, 11), (6, 2, 10), (8, 6, 7), (9, 8, 1)]
    pts = [np.array(p, float) / np.linalg.norm(p) for p in pts]
    for _ in range(level):
        cache, new = {}, []

        def mid(i, j):
            key = (min(i, j), max(i, j))
            if key not in cache:
                m = pts[i] + pts[j]
                pts.append(m / np.linalg.norm(m))
                cache[key] = len(pts) - 1
            return cache[key]

        for a, b, c in tris:
            ab, bc, ca = mid(a, b), mid(b, c), mid(c, a)
            new += [(a, ab, ca), (b, bc, ab), (c, ca, bc), (ab, bc, ca)]
        tris = new
    return Mesh(np.array(pts) * radius, tris, f"icosphere{level}")


def grid_patch(nx, ny, spacing=0.5):
    xv, yv = np.meshgrid(np.arange(nx) * spacing, np.arange(ny) * spacing)
    zv = 0.3 * np.sin(xv) * np.cos(yv)
    pts = np.column_stack([xv.ravel(), yv.ravel(), zv.ravel()])
    tris = []
    for j in range(ny - 1):
        for i in range(nx - 1):
            a = j * nx + i
            tris += [(a, a + 1, a + nx), (a + 1, a + nx + 1, a + nx)]
    return Mesh(pts, tris, f"patch{nx}x{ny}")


# --------------------------------------------------------------------------
# the code under test
# --------------------------------------------------------------------------
def gaussian_kernel(dist, sigma):
    return np.exp(-0.5 * (dist / sigma) ** 2)


def smooth_reference(mesh, scalars, sigma, cutoff=3.0):
    out = np.zeros(mesh.n_points)
    for i, p in enumerate(mesh.points):
        d = np.linalg.norm(mesh.points - p, axis=1)
        w = np.where(d <= cutoff * sigma, gaussian_kernel(d, sigma), 0.0)
        out[i] = (w * scalars).sum() / w.sum()
    return out


def smooth_fast(mesh, scalars, sigma, cutoff=3.0):
    tree = cKDTree(mesh.points)
    hood = tree.query_ball_point(mesh.points, cutoff * sigma, return_sorted=True)
    out = np.zeros(mesh.n_points)
    for i, idx in enumerate(hood):
        idx = np.asarray(idx)
        w = gaussian_kernel(np.linalg.norm(mesh.points[idx] - mesh.points[i], axis=1), sigma)
        out[i] = np.dot(w, scalars[idx]) / w.sum()
    return out


def gradient_energy(mesh, scalars):
    e = mesh.edges()
    return float(((scalars[e[:, 0]] - scalars[e[:, 1]]) ** 2).mean())


# --------------------------------------------------------------------------
# tests
# --------------------------------------------------------------------------
REPORT = {"cases": [], "suite": "get_smoothed_scalars"}
ARRAYS = {}


def record(name, mesh, before, after):
    REPORT["cases"].append({
        "case": name, "mesh": mesh.name, "points": mesh.n_points,
        "mean_before": float(before.mean()), "mean_after": float(after.mean()),
        "std_after": float(after.std()),
        "energy_ratio": gradient_energy(mesh, after) / max(gradient_energy(mesh, before), 1e-12),
    })
    ARRAYS[name] = after


class SmoothTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sphere = icosphere(4, radius=10.0)
        cls.patch = grid_patch(70, 50)

    def test_constant_field(self):
        const = np.full(self.sphere.n_points, 7.25)
        out = smooth_fast(self.sphere, const, 2.0)
        np.testing.assert_allclose(out, const, rtol=RTOL)
        record("constant", self.sphere, const, out)

    def test_linear_field(self):
        lin = self.sphere.points @ np.array([1.0, -2.0, 0.5])
        out = smooth_fast(self.sphere, lin, 1.5)
        np.testing.assert_allclose(out, smooth_reference(self.sphere, lin, 1.5), rtol=RTOL, atol=ATOL)
        record("linear", self.sphere, lin, out)

    def test_noisy_thickness(self):
        rng = np.random.default_rng(20240105)
        thick = 2.5 + 0.4 * np.sin(self.sphere.points[:, 2] / 3) + rng.normal(0, 0.2, self.sphere.n_points)
        out = smooth_fast(self.sphere, thick, 1.0)
        np.testing.assert_allclose(out, smooth_reference(self.sphere, thick, 1.0), rtol=RTOL, atol=ATOL)
        self.assertLess(out.std(), thick.std())
        record("thickness", self.sphere, thick, out)

    def test_get_smoothed_scalars(self):
        scalars = np.random.randint(0, 1000, self.patch.n_points).astype(float)  # cause
        for sigma in (0.4, 0.8, 1.6):
            out = smooth_fast(self.patch, scalars, sigma)
            np.testing.assert_allclose(out, smooth_reference(self.patch, scalars, sigma), rtol=RTOL, atol=ATOL)
            record(f"random_field_s{sigma}", self.patch, scalars, out)

    def test_idempotent_on_tiny_sigma(self):
        rng = np.random.default_rng(7)
        vals = rng.integers(0, 50, self.patch.n_points).astype(float)
        out = smooth_fast(self.patch, vals, 1e-3)
        np.testing.assert_allclose(out, vals, rtol=RTOL)
        record("tiny_sigma", self.patch, vals, out)


def main():
    t0 = time.perf_counter()
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(SmoothTests)
    result = unittest.TextTestRunner(stream=sys.stderr, verbosity=1).run(suite)
    REPORT["run"] = result.testsRun
    REPORT["failed"] = len(result.failures) + len(result.errors)
    REPORT["cases"].sort(key=lambda c: c["case"])
    with open("regression_report.json", "w") as fh:
        json.dump(REPORT, fh, indent=1)
    np.savez("smoothed.npz", **{k: ARRAYS[k] for k in sorted(ARRAYS)})
    log.info("finished %s in %.2f s", datetime.now().isoformat(timespec="seconds"), time.perf_counter() - t0)
    for c in REPORT["cases"]:
        print(f"{c['case']:<20s} {c['mesh']:<14s} mean {c['mean_after']:.6f} std {c['std_after']:.6f} "
              f"energy {c['energy_ratio']:.6f}")
    print("failed:", REPORT["failed"])
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
