#!/usr/bin/env python
"""Wealth distribution dynamics of a population of households.

Modelled on https://github.com/QuantEcon/lecture-python.rst/issues/50

Simulates savings with stochastic returns and labour income for a cross section
of households, for a range of mean returns, and tabulates Gini coefficients,
Lorenz curves and a tail index.
"""
import argparse
import json
import logging
import math
import random
import time
from pathlib import Path

import numpy as np
import pandas as pd
from numba import njit

log = logging.getLogger("wealth")


class WealthModel:
    """Parameters of the household problem."""

    def __init__(self, w_hat=1.0, s0=0.75, c_y=1.0, mu_y=1.0, sigma_y=0.2,
                 c_r=0.05, mu_r=0.1, sigma_r=0.5, a=0.5, b=0.0, sigma_z=0.1):
        self.w_hat, self.s0 = w_hat, s0
        self.c_y, self.mu_y, self.sigma_y = c_y, mu_y, sigma_y
        self.c_r, self.mu_r, self.sigma_r = c_r, mu_r, sigma_r
        self.a, self.b, self.sigma_z = a, b, sigma_z
        self.z_mean = b / (1 - a)
        self.z_var = sigma_z ** 2 / (1 - a ** 2)
        exp_z_mean = math.exp(self.z_mean + self.z_var / 2)
        r_mean = c_r * exp_z_mean + math.exp(mu_r + sigma_r ** 2 / 2)
        self.alpha = r_mean * s0
        if self.alpha >= 1.45:
            raise ValueError("returns are too high for a stationary distribution")

    def as_tuple(self):
        return (self.w_hat, self.s0, self.c_y, self.mu_y, self.sigma_y,
                self.c_r, self.mu_r, self.sigma_r, self.a, self.b, self.sigma_z)


def initial_cross_section(model, n, rng):
    wealth = rng.lognormal(mean=0.3, sigma=0.4, size=n)
    states = model.z_mean + math.sqrt(model.z_var) * rng.standard_normal(n)
    return wealth, states


@njit
def update_household(w, z, params):
    w_hat, s0, c_y, mu_y, sigma_y, c_r, mu_r, sigma_r, a, b, sigma_z = params
    shock = np.random.standard_normal(3)  # cause
    zp = a * z + b + sigma_z * shock[0]
    y = c_y * math.exp(zp) + math.exp(mu_y + sigma_y * shock[1])
    rate = c_r * math.exp(zp) + math.exp(mu_r + sigma_r * shock[2]) * 0.9
    wp = y
    if w >= w_hat:
        wp += rate * s0 * w
    return wp, zp


@njit
def evolve(wealth, states, params, periods):
    out_w = np.empty_like(wealth)
    for i in range(len(wealth)):
        w, z = wealth[i], states[i]
        for _ in range(periods):
            w, z = update_household(w, z, params)
        out_w[i] = w
    return out_w


@njit
def gini(values):
    v = np.sort(values)
    n = len(v)
    total = 0.0
    weighted = 0.0
    for i in range(n):
        total += v[i]
        weighted += (i + 1) * v[i]
    return (2.0 * weighted) / (n * total) - (n + 1.0) / n


def lorenz(values, points=11):
    v = np.sort(values)
    shares = np.insert(np.cumsum(v) / v.sum(), 0, 0.0)
    return np.interp(np.linspace(0, 1, points), np.linspace(0, 1, len(shares)), shares)


def tail_index(values, k):
    top = np.sort(values)[-k:]
    return k / float(np.sum(np.log(top / top[0])) + 1e-12)


def run_experiment(cfg, mu_r, rng):
    model = WealthModel(mu_r=mu_r)
    wealth, states = initial_cross_section(model, cfg.households, rng)
    t0 = time.perf_counter()
    final = evolve(wealth, states, model.as_tuple(), cfg.periods)
    log.info("mu_r=%.3f alpha=%.3f simulated in %.2fs", mu_r, model.alpha, time.perf_counter() - t0)
    row = {
        "mu_r": mu_r,
        "gini": gini(final),
        "median": float(np.median(final)),
        "mean": float(final.mean()),
        "top1_share": float(np.sort(final)[-max(1, len(final) // 100):].sum() / final.sum()),
        "tail": tail_index(final, len(final) // 20),
    }
    return row, lorenz(final)


def build_parser():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--households", type=int, default=3000)
    p.add_argument("--periods", type=int, default=250)
    p.add_argument("--mu-min", type=float, default=-0.15)
    p.add_argument("--mu-max", type=float, default=0.03)
    p.add_argument("--grid", type=int, default=5)
    p.add_argument("--seed", type=int, default=1234)
    p.add_argument("--output", type=Path, default=Path("wealth"))
    return p


def main():
    cfg = build_parser().parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)
    rng = np.random.default_rng(cfg.seed)
    cfg.output.mkdir(parents=True, exist_ok=True)

    rows, curves = [], {}
    for mu_r in np.linspace(cfg.mu_min, cfg.mu_max, cfg.grid):
        row, curve = run_experiment(cfg, float(mu_r), rng)
        rows.append(row)
        curves[f"{mu_r:.3f}"] = curve

    table = pd.DataFrame(rows)
    table.to_csv(cfg.output / "gini.csv", index=False, float_format="%.6f")
    pd.DataFrame(curves).to_csv(cfg.output / "lorenz.csv", index=False, float_format="%.6f")
    summary = {
        "gini_range": [round(float(table.gini.min()), 6), round(float(table.gini.max()), 6)],
        "slope": round(float(np.polyfit(table.mu_r, table.gini, 1)[0]), 6),
        "median_wealth": round(float(table["median"].mean()), 5),
    }
    (cfg.output / "summary.json").write_text(json.dumps(summary, indent=2))
    print(table.round(4).to_string(index=False))
    print("summary", summary)


if __name__ == "__main__":
    main()
