"""Solve a predator-prey system with networks trained on the equation residual.

Modelled on https://github.com/NeuroDiffGym/neurodiffeq/pull/209

The two unknowns share a trunk network; training uses noisy gradient steps with
an annealed temperature and keeps a posterior average of late iterates. Writes
solution.csv, history.csv and report.json.
"""
import csv
import json
import logging
import os
import random
import sys
import time

import numpy as np
import torch

from z05_pkg.equations import LotkaVolterra, reference_solution
from z05_pkg.networks import build_networks
from z05_pkg.solver import Solver

CONFIG = {
    "seed": 5,
    "t_max": 2.0,
    "points": 48,
    "epochs": 350,
    "lr": 6e-3,
    "temperature": 2e-4,
    "average_from": 250,
}


def main():
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, datefmt="%H:%M:%S",
                        format="%(asctime)s %(levelname)-5s %(message)s")
    log = logging.getLogger("ode")
    cfg = CONFIG
    random.seed(cfg["seed"])
    np.random.seed(cfg["seed"])
    torch.manual_seed(cfg["seed"])

    system = LotkaVolterra(alpha=1.5, beta=1.0, gamma=3.0, delta=1.0, start=(1.0, 1.0))
    nets = build_networks(hidden=16, depth=2)
    solver = Solver(system, nets, cfg, log)
    log.info("%d networks, %d tensors to train, output in %s", len(nets), solver.n_tensors, os.getcwd())

    t0 = time.perf_counter()
    history = solver.fit()
    log.info("%d epochs in %.2fs", cfg["epochs"], time.perf_counter() - t0)

    grid = torch.linspace(0.0, cfg["t_max"], 41)[:, None]
    values = solver.predict(grid)
    exact = reference_solution(system, grid[:, 0].numpy())
    with open("solution.csv", "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["t", "prey", "predator", "prey_rk4", "predator_rk4"])
        for t, v, e in zip(grid[:, 0].tolist(), values.tolist(), exact.tolist()):
            writer.writerow([f"{t:.3f}", *(f"{z:.8f}" for z in v), *(f"{z:.8f}" for z in e)])
    with open("history.csv", "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["epoch", "residual", "temperature"])
        writer.writerows(history)
    error = np.abs(values.numpy() - exact)
    report = {
        "config": cfg,
        "final_residual": history[-1][1],
        "max_error": float(error.max()),
        "mean_error": [float(e) for e in error.mean(axis=0)],
    }
    with open("report.json", "w") as fh:
        json.dump(report, fh, indent=2)
    log.info("residual %.8f, max error %.6f, mean error %.6f / %.6f", report["final_residual"],
             report["max_error"], *report["mean_error"])


if __name__ == "__main__":
    main()
