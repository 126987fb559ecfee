"""Replicated stochastic epidemic experiments, evaluated in parallel, with a parameter fit.

Modelled on https://github.com/pints-team/pints/issues/1358
A stochastic SIR model is simulated for a grid of parameters by a pool of workers and compared to data.
"""
import argparse
import csv
import json
import logging
import multiprocessing as mp
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("sir")


@dataclass
class StudyConfig:
    seed: int = 2021
    population: int = 1500
    initial: int = 12
    days: int = 70
    replicates: int = 8
    betas: tuple = (0.26, 0.30, 0.34, 0.38, 0.42)
    gammas: tuple = (0.10, 0.14, 0.18)
    true_beta: float = 0.34
    true_gamma: float = 0.14
    workers: int = 3
    steps_per_day: int = 6
    out_dir: str = "sir_study"


@dataclass(frozen=True)
class Task:
    index: int
    beta: float
    gamma: float
    replicate: int


def simulate(beta, gamma, cfg):
    """Tau-leaping SIR; returns the daily number of new infections."""
    s, i, r = cfg.population - cfg.initial, cfg.initial, 0
    dt = 1.0 / cfg.steps_per_day
    daily = np.zeros(cfg.days, dtype=int)
    for day in range(cfg.days):
        for _ in range(cfg.steps_per_day):
            p_inf = 1 - np.exp(-beta * i / cfg.population * dt)
            p_rec = 1 - np.exp(-gamma * dt)
            new = np.random.binomial(s, p_inf)  # cause
            rec = np.random.binomial(i, p_rec)  # cause
            s, i, r = s - new, i + new - rec, r + rec
            daily[day] += new
    return daily


class Evaluator:
    """Maps a task to the summary of one simulated epidemic."""

    def __init__(self, cfg, observed):
        self.cfg, self.observed = cfg, observed

    def __call__(self, task):
        daily = simulate(task.beta, task.gamma, self.cfg)
        distance = float(np.sqrt(((np.sqrt(daily) - np.sqrt(self.observed)) ** 2).mean()))
        return task, {
            "size": int(daily.sum() + self.cfg.initial),
            "peak_day": int(daily.argmax()),
            "peak": int(daily.max()),
            "distance": round(distance, 6),
        }


class ParallelEvaluator:
    def __init__(self, function, workers):
        self.function, self.workers = function, workers

    def evaluate(self, tasks):
        if self.workers <= 1:
            return [self.function(t) for t in tasks]
        with mp.get_context("fork").Pool(self.workers) as pool:
            return pool.map(self.function, tasks, chunksize=1)  # cause


def make_tasks(cfg):
    tasks = []
    for beta in cfg.betas:
        for gamma in cfg.gammas:
            for rep in range(cfg.replicates):
                tasks.append(Task(len(tasks), beta, gamma, rep))
    return tasks


def aggregate(results, cfg):
    grid = {}
    for task, res in results:
        grid.setdefault((task.beta, task.gamma), []).append(res)
    rows = []
    for (beta, gamma), reps in grid.items():
        rows.append({
            "beta": beta, "gamma": gamma, "r0": round(beta / gamma, 3),
            "size": round(float(np.mean([r["size"] for r in reps])), 2),
            "size_sd": round(float(np.std([r["size"] for r in reps])), 3),
            "peak_day": round(float(np.mean([r["peak_day"] for r in reps])), 3),
            "distance": round(float(np.mean([r["distance"] for r in reps])), 6),
        })
    return rows


def abc_posterior(results, quantile=0.15):
    """Keep the closest simulations and average their parameters."""
    dist = np.array([r["distance"] for _, r in results])
    keep = dist <= np.quantile(dist, quantile)
    beta = np.array([t.beta for t, _ in results])[keep]
    gamma = np.array([t.gamma for t, _ in results])[keep]
    return {"accepted": int(keep.sum()), "beta": round(float(beta.mean()), 5),
            "beta_sd": round(float(beta.std()), 5), "gamma": round(float(gamma.mean()), 5),
            "gamma_sd": round(float(gamma.std()), 5),
            "threshold": round(float(np.quantile(dist, quantile)), 6)}


def write_rows(path, rows):
    with open(path, "w", newline="") as fh:
        w = csv.DictWriter(fh, fieldnames=list(rows[0]))
        w.writeheader()
        w.writerows(rows)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--workers", type=int, default=StudyConfig.workers)
    ap.add_argument("--replicates", type=int, default=StudyConfig.replicates)
    ap.add_argument("--seed", type=int, default=StudyConfig.seed)
    args = ap.parse_args()
    cfg = StudyConfig(workers=args.workers, replicates=args.replicates, seed=args.seed)
    out = Path(cfg.out_dir)
    out.mkdir(exist_ok=True)

    np.random.seed(cfg.seed)
    observed = simulate(cfg.true_beta, cfg.true_gamma, cfg)
    log.info("observed epidemic: %d infections, peak on day %d", observed.sum(), observed.argmax())

    tasks = make_tasks(cfg)
    start = time.perf_counter()
    results = ParallelEvaluator(Evaluator(cfg, observed), cfg.workers).evaluate(tasks)
    log.info("%d simulations in %.2fs", len(tasks), time.perf_counter() - start)

    rows = aggregate(results, cfg)
    posterior = abc_posterior(results)
    write_rows(out / "grid.csv", rows)
    write_rows(out / "replicates.csv", [{**asdict(t), **r} for t, r in results])
    (out / "posterior.json").write_text(json.dumps(posterior, indent=1))

    print("beta  gamma    R0     size  peak_day  distance")
    for r in rows:
        print(f"{r['beta']:.2f}  {r['gamma']:.2f}  {r['r0']:6.3f} {r['size']:8.2f} "
              f"{r['peak_day']:8.2f}  {r['distance']:.5f}")
    best = min(rows, key=lambda r: r["distance"])
    print(f"best grid point: beta={best['beta']} gamma={best['gamma']}")
    print("posterior:", " ".join(f"{k}={v}" for k, v in posterior.items()))


if __name__ == "__main__":
    main()
