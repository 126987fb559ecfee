"""Cuts map tiles out of scenes for a web map and writes an overview picture.

Tiles at the border reach beyond the scene; they are read boundless. For every
scene the program prints the statistics of its tiles and saves an overview in
which each tile is reduced to a few pixels.

Modelled on: https://github.com/rasterio/rasterio/issues/1030
"""
import hashlib
import time

import numpy as np
from PIL import Image

TILE = 64
SCENES = 14


class Scene:
    """A one band raster held in memory, with a catalogue of its acquisitions."""

    def __init__(self, name, seed, height, width):
        self.name = name
        rng = np.random.default_rng(seed)
        y, x = np.mgrid[0:height, 0:width]
        field = np.zeros((height, width))
        for _ in range(14):
            cy, cx = rng.uniform(0, height), rng.uniform(0, width)
            size = rng.uniform(20, 120)
            field += rng.uniform(0.3, 1) * np.exp(-((y - cy) ** 2 + (x - cx) ** 2) / (2 * size ** 2))
        field += rng.normal(0, 0.02, field.shape)
        field -= field.min()
        self.data = (1 + 254 * field / field.max()).astype(np.uint8)

    def read(self, row, col, height, width):
        """The window at (row, col); it may cross the edge of the scene."""
        out = np.empty((height, width), dtype=np.uint8)  # cause
        r0, r1 = max(row, 0), min(row + height, self.data.shape[0])
        c0, c1 = max(col, 0), min(col + width, self.data.shape[1])
        if r0 < r1 and c0 < c1:
            out[r0 - row:r1 - row, c0 - col:c1 - col] = self.data[r0:r1, c0:c1]
        return out


class Catalogue:
    """Acquisitions along the track, grouped for each tile."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def for_tile(self, count):
        passes = [{"orbit": int(o), "cloud": float(c)}
                  for o, c in zip(self.rng.integers(1, 400, count), self.rng.uniform(0, 1, count))]
        clear = [p for p in passes if p["cloud"] < 0.35]
        return len(clear), min(p["cloud"] for p in passes)


def tile_windows(scene):
    height, width = scene.data.shape
    for row in range(-TILE // 2, height, TILE):
        for col in range(-TILE // 2, width, TILE):
            yield row, col


def stretch(tile, low, high):
    scaled = (tile.astype(np.float64) - low) / max(high - low, 1)
    return np.clip(scaled * 255, 0, 255).astype(np.uint8)


def process(scene, catalogue):
    tiles = []
    clear_total = 0
    for row, col in tile_windows(scene):
        clear, best = catalogue.for_tile(500)
        clear_total += clear
        tile = scene.read(row, col, TILE, TILE)
        tiles.append((row, col, tile, best))
    values = np.concatenate([t.ravel() for _, _, t, _ in tiles])
    low, high = np.percentile(values, [2, 98])
    columns = len({col for _, col, _, _ in tiles})
    small = []
    for _, _, tile, _ in tiles:
        image = Image.fromarray(stretch(tile, low, high))
        small.append(np.asarray(image.resize((8, 8), Image.BOX)))
    rows = [np.hstack(small[i:i + columns]) for i in range(0, len(small), columns)]
    overview = np.vstack(rows)
    stats = {
        "tiles": len(tiles),
        "mean": float(values.mean()),
        "std": float(values.std()),
        "dark": float((values == 0).mean()),
        "clear": clear_total,
        "digest": hashlib.sha256(values.tobytes()).hexdigest()[:12],
    }
    return overview, stats


def main():
    began = time.time()
    names = [f"scene_{chr(97 + k)}" for k in range(SCENES)]
    grand = []
    for k, name in enumerate(names):
        scene = Scene(name, seed=100 + k, height=520 + 60 * k, width=700 - 40 * k)
        overview, stats = process(scene, Catalogue(seed=200 + k))
        Image.fromarray(overview).save(f"{name}_overview.png")
        grand.append(stats["mean"])
        print(f"{name}  tiles {stats['tiles']:3d}  mean {stats['mean']:9.5f}  std {stats['std']:9.5f}"
              f"  empty {stats['dark']:.5f}  clear passes {stats['clear']:6d}  {stats['digest']}")
    print(f"mean of all scenes: {np.mean(grand):.6f}")
    print(f"done in {time.time() - began:.1f} s")


if __name__ == "__main__":
    main()
