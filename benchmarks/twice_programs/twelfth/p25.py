"""Robot navigation among random obstacles with a probabilistic road map.

Modelled on https://github.com/hanruihua/ir-sim/issues/147
The simulator was given a seed for its scenario, while the road map planner still drew its own sample points.
"""
import argparse
import csv
import json
import logging
import random
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from p25_irsim.env import make  # noqa: E402
from p25_irsim.prm import PRMPlanner  # noqa: E402
from p25_irsim.tracking import PurePursuit, simulate  # noqa: E402

log = logging.getLogger("irsim")


@dataclass
class Config:
    width: float = 20.0
    height: float = 20.0
    obstacles: int = 16
    robot_radius: float = 0.4
    samples: int = 180
    neighbours: int = 8
    max_edge: float = 6.0
    scenarios: int = 4
    speed: float = 1.0
    lookahead: float = 0.8
    dt: float = 0.1
    seed: int = 1
    out: str = "animation_buffer"


def path_length(path):
    return float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())


def smoothness(path):
    d = np.diff(path, axis=0)
    heading = np.unwrap(np.arctan2(d[:, 1], d[:, 0]))
    return float(np.abs(np.diff(heading)).sum())


def run_scenario(cfg, k):
    env = make(cfg, seed=cfg.seed + k)
    planner = PRMPlanner(env, cfg.robot_radius, cfg.samples, cfg.neighbours, cfg.max_edge)
    t0 = time.perf_counter()
    path = planner.planning(env.start, env.goal)
    log.info("scenario %d planned in %.3fs", k, time.perf_counter() - t0)
    if path is None:
        return {"scenario": k, "found": False}, None, None
    controller = PurePursuit(path, cfg.lookahead, cfg.speed)
    track = simulate(env, controller, cfg.dt)
    result = {
        "scenario": k,
        "found": True,
        "nodes": len(path),
        "edges": planner.n_edges,
        "length": round(path_length(path), 5),
        "turning": round(smoothness(path), 5),
        "steps": len(track),
        "clearance": round(float(env.clearance(track[:, :2]).min()), 5),
        "arrived": bool(np.linalg.norm(track[-1, :2] - env.goal) < 0.5),
    }
    return result, path, track


def save_track(out, k, path, track):
    np.savetxt(out / f"path_{k}.csv", path, delimiter=",", fmt="%.5f")
    with open(out / f"track_{k}.csv", "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["x", "y", "theta"])
        w.writerows([[f"{v:.5f}" for v in row] for row in track])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--scenarios", type=int, default=Config.scenarios)
    ap.add_argument("--samples", type=int, default=Config.samples)
    ap.add_argument("--seed", type=int, default=Config.seed)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    cfg = Config(scenarios=args.scenarios, samples=args.samples, seed=args.seed)
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)
    out = Path(cfg.out)
    out.mkdir(exist_ok=True)

    results = []
    for k in range(cfg.scenarios):
        result, path, track = run_scenario(cfg, k)
        results.append(result)
        if path is None:
            print(f"scenario {k}: no path")
            continue
        save_track(out, k, path, track)
        print(f"scenario {k}: {result['nodes']} nodes, length {result['length']:.4f}, "
              f"turning {result['turning']:.4f}, {result['steps']} steps, "
              f"clearance {result['clearance']:.4f}")
    found = [r for r in results if r["found"]]
    print(f"success {len(found)}/{len(results)}, "
          f"mean length {np.mean([r['length'] for r in found]):.5f}")
    (out / "results.json").write_text(
        json.dumps({"config": asdict(cfg), "results": results}, indent=1))


if __name__ == "__main__":
    main()
