"""Registration of the strips of a synthetic survey flight.

Features of neighbouring views are matched, essential relations are estimated
robustly with hypothesis scoring spread over the workers, tracks are
triangulated along the strip and the cloud is written with its residuals.

Modelled on: https://github.com/isl-org/Open3D/issues/7475
"""
import json
import logging
import time

import numpy as np

from x06_pkg.cloud import save_ply, triangulate
from x06_pkg.config import Config
from x06_pkg.robust import RobustEstimator
from x06_pkg.scene import make_scene


def main():
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s] %(message)s")
    log = logging.getLogger("sfm")
    cfg = Config()
    t0 = time.time()
    scene = make_scene(cfg.n_views, cfg.n_points, cfg.outlier_ratio, cfg.seed)
    estimator = RobustEstimator(cfg)

    pairs, cloud = [], []
    for k, match in enumerate(scene.matches):
        model = estimator.fit(match.left, match.right)
        points, residual = triangulate(model, match, scene.intrinsics)
        cloud.append(points)
        pairs.append({
            "pair": k,
            "matches": int(len(match.left)),
            "inliers": int(model.inliers.sum()),
            "hypotheses": int(model.tested),
            "cost": float(model.score),
            "median_cost": model.median_cost,
            "threshold": float(model.threshold),
            "residual": float(residual),
            "F": (model.matrix / np.linalg.norm(model.matrix)).ravel().tolist(),
        })
        log.info("pair %d: %d inliers", k, pairs[-1]["inliers"])

    cloud = np.concatenate(cloud)
    save_ply("cloud.ply", cloud)
    with open("sfm_report.json", "w") as fh:
        json.dump({"seed": cfg.seed, "pairs": pairs, "points": len(cloud),
                   "rmse": float(np.sqrt(np.mean([p["residual"] ** 2 for p in pairs])))},
                  fh, indent=1)
    for p in pairs:
        print(f"pair {p['pair']} inliers {p['inliers']} residual {p['residual']:.6f}")
    print(f"points {len(cloud)} centroid {np.round(cloud.mean(axis=0), 6).tolist()}")
    log.info("reconstruction took %.1fs", time.time() - t0)


if __name__ == "__main__":
    main()
