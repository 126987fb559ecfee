#!/usr/bin/env python
"""Neural surrogate of a simulation trained on a space-filling design.

Modelled on https://github.com/SMTorg/smt/issues/250

Samples the parameter box of a cheap cardiovascular model with a Latin hypercube,
runs the model at every point, fits a small network as a surrogate and estimates
first-order sensitivities from it.
"""
import argparse
import json
import logging
import random
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from scipy.integrate import solve_ivp
from scipy.stats import qmc
from torch import nn

log = logging.getLogger("surrogate")

XLIMITS = {
    "hr": (0.7, 1.8),
    "e_max": (0.8, 3.0),
    "e_off": (0.02, 0.2),
    "c_ao": (0.5, 2.5),
    "svr": (0.6, 1.6),
}


def set_seeds(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)


class LHS:
    """Latin hypercube sampling in a box."""

    def __init__(self, xlimits, criterion="random-cd"):
        self.xlimits = np.asarray(xlimits, dtype=float)
        self.engine = qmc.LatinHypercube(d=len(self.xlimits), optimization=criterion)  # cause

    def __call__(self, n):
        unit = self.engine.random(n)  # cause
        return qmc.scale(unit, self.xlimits[:, 0], self.xlimits[:, 1])


class Windkessel:
    """Two-element windkessel fed by a time-varying elastance."""

    outputs = ("map", "pulse_pressure", "stroke")

    def __init__(self, cycles=2, points=100):
        self.cycles, self.points = cycles, points

    def elastance(self, t, hr, e_max, e_off):
        phase = (t * hr) % 1.0
        act = np.where(phase < 0.35, np.sin(np.pi * phase / 0.35) ** 2, 0.0)
        return e_off + e_max * act

    def run(self, theta):
        hr, e_max, e_off, c_ao, svr = theta

        def rhs(t, y):
            v, p = y
            p_lv = self.elastance(t, hr, e_max, e_off) * max(v - 10.0, 0.0)
            q_out = max(p_lv - p, 0.0) / 0.05
            q_in = max(8.0 - p_lv, 0.0) / 0.04
            return [q_in - q_out, (q_out - p / svr) / c_ao]

        t_end = self.cycles / hr
        grid = np.linspace(t_end * (1 - 1 / self.cycles), t_end, self.points)
        sol = solve_ivp(rhs, (0, t_end), [110.0, 70.0], t_eval=grid, max_step=0.05, rtol=1e-3)
        v, p = sol.y
        return np.array([p.mean(), p.max() - p.min(), v.max() - v.min()])


class Surrogate(nn.Module):
    def __init__(self, d_in, d_out, width=64):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d_in, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(),
                                 nn.Linear(width, d_out))

    def forward(self, x):
        return self.net(x)


def fit(x, y, epochs, lr):
    model = Surrogate(x.shape[1], y.shape[1])
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs)
    history = []
    for epoch in range(epochs):
        perm = torch.randperm(len(x))
        total = 0.0
        for idx in perm.split(16):
            loss = nn.functional.mse_loss(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        sched.step()
        history.append(total / len(x))
        if epoch % 40 == 0:
            log.info("epoch %3d loss %.5f", epoch, history[-1])
    return model, history


@torch.no_grad()
def sensitivities(model, d, n, generator):
    """First-order indices from a binned conditional mean."""
    x = torch.rand(n, d, generator=generator) * 2 - 1
    y = model(x)
    var = y.var(dim=0)
    rows = []
    for j in range(d):
        bins = ((x[:, j] + 1) / 2 * 20).long().clamp(0, 19)
        means = torch.stack([y[bins == b].mean(0) for b in range(20)])
        rows.append((means.var(dim=0) / var).tolist())
    return rows


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--samples", type=int, default=40)
    p.add_argument("--validation", type=int, default=20)
    p.add_argument("--epochs", type=int, default=80)
    p.add_argument("--lr", type=float, default=5e-3)
    p.add_argument("--seed", type=int, default=139)
    p.add_argument("--out", type=Path, default=Path("surrogate_run"))
    args = p.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    set_seeds(args.seed)
    args.out.mkdir(parents=True, exist_ok=True)

    names = list(XLIMITS)
    limits = np.array([XLIMITS[k] for k in names])
    design = LHS(limits)(args.samples)
    holdout = np.random.uniform(limits[:, 0], limits[:, 1], (args.validation, len(names)))
    sim = Windkessel()
    t0 = time.time()
    y_train = np.array([sim.run(row) for row in design])
    y_valid = np.array([sim.run(row) for row in holdout])
    log.info("%d simulations in %.1fs", len(design) + len(holdout), time.time() - t0)

    centre, half = limits.mean(1), np.ptp(limits, axis=1) / 2
    y_mean, y_std = y_valid.mean(0), y_valid.std(0)
    to_t = lambda a: torch.tensor(a, dtype=torch.float32)
    model, history = fit(to_t((design - centre) / half), to_t((y_train - y_mean) / y_std), args.epochs, args.lr)
    with torch.no_grad():
        pred = model(to_t((holdout - centre) / half)).numpy() * y_std + y_mean
    rmse = np.sqrt(((pred - y_valid) ** 2).mean(0))
    rows = sensitivities(model, len(names), 20000, torch.Generator().manual_seed(args.seed))

    pd.DataFrame(design, columns=names).to_csv(args.out / "design.csv", index=False, float_format="%.6f")
    table = pd.DataFrame(rows, index=names, columns=Windkessel.outputs)
    table.to_csv(args.out / "sensitivities.csv", float_format="%.5f")
    summary = {"rmse": dict(zip(Windkessel.outputs, rmse.round(5).tolist())), "final_loss": round(history[-1], 7)}
    (args.out / "summary.json").write_text(json.dumps(summary, indent=2))
    print(table.round(3))
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
