"""Terrain statistics of a tiled elevation model.

Cuts a digital elevation model into tiles, computes slope, roughness and flow
accumulation for each of them on a small worker pool, puts the tile values back
on the map and derives the erosion-risk classes per catchment.

Modelled on: https://github.com/shazow/workerpool/issues/6
"""
import json
import logging
import time

import numpy as np

from y09_pkg.dem import catchments, make_dem, tiles
from y09_pkg.risk import classify, summarise
from y09_pkg.terrain import tile_statistics
from y09_pkg.workerpool import WorkerPool

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(threadName)s %(message)s")
log = logging.getLogger("terrain")
SEED = 31
TILE = 64


def main():
    t0 = time.perf_counter()
    dem = make_dem(960, SEED)
    work = tiles(dem, TILE)
    log.info("%d tiles of %d x %d", len(work), TILE, TILE)
    pool = WorkerPool(size=4)
    stats = pool.map(tile_statistics, work)
    pool.shutdown()
    n = dem.shape[0] // TILE
    grid = {k: np.array([s[k] for s in stats]).reshape(n, n) for k in stats[0]}
    basin = catchments(n, 7, SEED)
    risk = classify(grid)
    summary = summarise(risk, basin, grid)
    np.savez("terrain.npz", risk=risk, basin=basin, **grid)
    with open("catchments.json", "w") as fh:
        json.dump(summary, fh, indent=1)
    for row in summary["catchments"]:
        print(f"catchment {row['id']}  tiles {row['tiles']:3d}  mean slope {row['mean_slope']:.5f}  "
              f"high risk {row['high_risk']:.4f}")
    print(f"spatial autocorrelation of slope {summary['moran_slope']:.6f}")
    log.info("done in %.2f s", time.perf_counter() - t0)


if __name__ == "__main__":
    main()
