"""Terrain model: slope, flow accumulation, zonal statistics - QGIS processing log.

Output format: the log panel of a QGIS processing run (versions, "Algorithm
started at", input parameters, "Execution completed in", results with temporary
paths), GeoTIFF-like outputs and a GeoPackage.
Seen at: https://github.com/zoran-cuckovic/QGIS-visibility-analysis/issues/72
         https://github.com/qgis/QGIS/issues/58345
Field: geographic information systems.
"""
import json
import os
import platform
import shutil
import sqlite3
import sys
import tempfile
import time
import uuid
from datetime import datetime, timezone

import numpy as np
import scipy
from PIL import Image, TiffImagePlugin

SIZE, CELL = 160, 25.0
ROOT = tempfile.mkdtemp(prefix="processing_")
LOG = open("processing.log", "w")


def say(text=""):
    print(text)
    LOG.write(text + "\n")


def temporary_output(name):
    folder = os.path.join(ROOT, uuid.uuid4().hex)
    os.makedirs(folder)
    return os.path.join(folder, name)


def write_tif(path, data, **tags):
    info = TiffImagePlugin.ImageFileDirectory_v2()
    info[270] = json.dumps(tags)
    info[305] = f"QGIS processing / Pillow on {platform.node()}"
    info[306] = datetime.now().strftime("%Y:%m:%d %H:%M:%S")
    Image.fromarray(data.astype(np.float32)).save(path, tiffinfo=info)


class Algorithm:
    """Context of one algorithm: prints its header, times it, prints its results."""

    def __init__(self, title, **params):
        self.title, self.params = title, params

    def __enter__(self):
        say(f"Algorithm started at: {datetime.now():%Y-%m-%dT%H:%M:%S}")
        say(f"Algorithm '{self.title}' starting\u2026")
        say(f"Input parameters:\n{ {k: v for k, v in self.params.items()} }\n")
        self.t0, self.results = time.perf_counter(), {}
        return self

    def __exit__(self, *exc):
        secs = time.perf_counter() - self.t0
        say(f"Execution completed in {secs:.2f} seconds\nResults:\n{self.results}\n")
        say(f"Loading resulting layers\nAlgorithm '{self.title}' finished\n")


def terrain():
    rng = np.random.default_rng(2024)
    y, x = np.mgrid[0:SIZE, 0:SIZE] / SIZE
    z = 900 - 500 * y + 120 * np.sin(6 * x) * np.cos(4 * y)
    for scale in (4, 8, 16, 32):
        coarse = rng.normal(0, 90 / scale, (scale, scale))
        z += scipy.ndimage.zoom(coarse, SIZE / scale, order=3)
    return z


def slope(z):
    p = np.pad(z, 1, mode="edge")
    a, b, c = p[:-2, :-2], p[:-2, 1:-1], p[:-2, 2:]
    d, f = p[1:-1, :-2], p[1:-1, 2:]
    g, h, i = p[2:, :-2], p[2:, 1:-1], p[2:, 2:]
    dx = ((c + 2 * f + i) - (a + 2 * d + g)) / (8 * CELL)
    dy = ((g + 2 * h + i) - (a + 2 * b + c)) / (8 * CELL)
    return np.degrees(np.arctan(np.hypot(dx, dy)))


def accumulate(z):
    acc = np.ones_like(z)
    order = np.argsort(-z, axis=None, kind="stable")
    n, t0 = order.size, time.perf_counter()
    for count, cell in enumerate(order):
        r, c = divmod(int(cell), SIZE)
        best, target = 0.0, None
        for dr in (-1, 0, 1):
            for dc in (-1, 0, 1):
                rr, cc = r + dr, c + dc
                if (dr or dc) and 0 <= rr < SIZE and 0 <= cc < SIZE:
                    drop = (z[r, c] - z[rr, cc]) / (1.41421356 if dr and dc else 1.0)
                    if drop > best:
                        best, target = drop, (rr, cc)
        if target:
            acc[target] += acc[r, c]
        if count % 2560 == 0:
            secs = time.perf_counter() - t0
            left = secs * (n - count) / max(count, 1)
            sys.stderr.write(f"\r{100 * count // n:3d}% [{secs:5.1f}s<{left:5.1f}s]")
    sys.stderr.write("\n")
    return acc


def geopackage(path, rows):
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE gpkg_contents(table_name TEXT, data_type TEXT, identifier TEXT, last_change DATETIME)")
    db.execute("CREATE TABLE zones(fid INTEGER PRIMARY KEY, name TEXT, cells INTEGER, mean_slope REAL, max_acc REAL, layer_uuid TEXT)")
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    db.execute("INSERT INTO gpkg_contents VALUES('zones','features',?,?)", (f"zones_{uuid.uuid4()}", now))
    db.executemany("INSERT INTO zones VALUES(?,?,?,?,?,?)", [r + (str(uuid.uuid4()),) for r in rows])
    db.commit()
    db.close()


def main():
    began = time.perf_counter()
    say(f"QGIS version: 3.38.1-Grenoble\nPython version: {platform.python_version()}\nSciPy version: {scipy.__version__}\nHost: {platform.node()} pid {os.getpid()}\n")
    z = terrain()
    dem = temporary_output("dem.tif")
    write_tif(dem, z, source="synthetic")
    with Algorithm("Slope", INPUT=dem, Z_FACTOR=1.0, OUTPUT="TEMPORARY_OUTPUT") as alg:
        s = slope(z)
        out = temporary_output("OUTPUT.tif")
        write_tif(out, s, units="degree")
        alg.results["OUTPUT"] = out
    with Algorithm("Flow accumulation (d8)", ELEVATION=dem, METHOD=0, FLOW="TEMPORARY_OUTPUT") as alg:
        acc = accumulate(z)
        out = temporary_output("FLOW.tif")
        write_tif(out, acc, units="cells")
        alg.results["FLOW"] = out
    with Algorithm("Contour count", INPUT=dem, INTERVAL=50.0) as alg:
        levels = np.arange(np.ceil(z.min() / 50) * 50, z.max(), 50)
        counts = [int(scipy.ndimage.label(z > lv)[1]) for lv in levels]
        alg.results["CONTOURS"] = dict(zip((int(v) for v in levels), counts))
    layer = f"memory://Polygon?crs=EPSG:25832&uid={{{uuid.uuid4()}}}"
    with Algorithm("Zonal statistics", INPUT=layer, INPUT_RASTER=out, STATISTICS=[2, 6]) as alg:
        rows = []
        for k, name in enumerate(("NW", "NE", "SW", "SE")):
            r, c = divmod(k, 2)
            win = np.s_[r * SIZE // 2:(r + 1) * SIZE // 2, c * SIZE // 2:(c + 1) * SIZE // 2]
            rows.append((k + 1, name, s[win].size, round(float(s[win].mean()), 6), float(acc[win].max())))
        geopackage("zones.gpkg", rows)
        alg.results["OUTPUT"] = os.path.abspath("zones.gpkg") + "|layername=zones"
    say("fid  zone   cells  mean_slope   max_acc")
    for r in rows:
        say(f"{r[0]:3d}  {r[1]:<4}{r[2]:8d}{r[3]:12.6f}{r[4]:10.0f}")
    say(f"\nDEM min {z.min():.3f} max {z.max():.3f} mean {z.mean():.4f}; stream cells (acc > 200): {int((acc > 200).sum())}")
    say(f"Outlet accumulation {int(acc.max())} at cell {np.unravel_index(int(acc.argmax()), acc.shape)[1]},{np.unravel_index(int(acc.argmax()), acc.shape)[0]}")
    say(f"Model finished in {time.perf_counter() - began:.2f} seconds at {datetime.now():%H:%M:%S}")
    LOG.close()
    shutil.rmtree(ROOT)


if __name__ == "__main__":
    main()
