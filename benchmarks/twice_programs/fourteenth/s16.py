"""Rolling-horizon lot sizing and scheduling of a plant.

Modelled on https://github.com/coin-or/Cbc/issues/243
Solves a sequence of mixed-integer programs, each starting from the stock of the previous one.
"""
import argparse
import json
import logging
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import lil_matrix

log = logging.getLogger("plant")


@dataclass
class PlantConfig:
    seed: int = 19
    products: int = 14
    horizon: int = 12
    windows: int = 6
    freeze: int = 4
    solver_seconds: float = 0.6
    capacity: float = 330.0


@dataclass
class Instance:
    demand: np.ndarray
    setup_cost: np.ndarray
    setup_time: np.ndarray
    holding: np.ndarray
    unit_time: np.ndarray
    lost: float = 60.0


def make_instance(cfg):
    rng = np.random.default_rng(cfg.seed)
    periods = cfg.horizon + cfg.freeze * cfg.windows
    season = 1 + 0.3 * np.sin(np.arange(periods) / 3.0)
    base = rng.uniform(8, 26, cfg.products)
    demand = np.rint(base[:, None] * season * rng.uniform(0.5, 1.5, (cfg.products, periods)))
    return Instance(demand, rng.uniform(120, 420, cfg.products), rng.uniform(8, 24, cfg.products),
                    rng.uniform(0.6, 2.4, cfg.products), rng.uniform(0.7, 1.2, cfg.products))


class WindowModel:
    """Variables per product and period: make, stock, setup, lost."""

    def __init__(self, inst, cfg, start, stock):
        self.inst = inst
        self.cfg = cfg
        self.start = start
        self.stock = stock
        self.p = cfg.products
        self.t = cfg.horizon
        self.size = self.p * self.t

    def index(self, kind, i, t):
        return kind * self.size + i * self.t + t

    def objective(self):
        c = np.zeros(4 * self.size)
        for i in range(self.p):
            for t in range(self.t):
                c[self.index(1, i, t)] = self.inst.holding[i]
                c[self.index(2, i, t)] = self.inst.setup_cost[i]
                c[self.index(3, i, t)] = self.inst.lost
        return c

    def constraints(self):
        rows = self.size * 2 + self.t
        a = lil_matrix((rows, 4 * self.size))
        low = np.full(rows, -np.inf)
        high = np.zeros(rows)
        r = 0
        for i in range(self.p):
            for t in range(self.t):
                a[r, self.index(0, i, t)] = 1
                a[r, self.index(1, i, t)] = -1
                a[r, self.index(3, i, t)] = 1
                need = self.inst.demand[i, self.start + t]
                if t:
                    a[r, self.index(1, i, t - 1)] = 1
                else:
                    need -= self.stock[i]
                low[r] = high[r] = need
                r += 1
                a[r, self.index(0, i, t)] = 1
                a[r, self.index(2, i, t)] = -self.cfg.capacity / self.inst.unit_time[i]
                r += 1
        for t in range(self.t):
            for i in range(self.p):
                a[r, self.index(0, i, t)] = self.inst.unit_time[i]
                a[r, self.index(2, i, t)] = self.inst.setup_time[i]
            high[r] = self.cfg.capacity
            r += 1
        return LinearConstraint(a.tocsr(), low, high)

    def solve(self):
        integrality = np.zeros(4 * self.size)
        integrality[2 * self.size:3 * self.size] = 1
        upper = np.full(4 * self.size, np.inf)
        upper[2 * self.size:3 * self.size] = 1
        options = {"time_limit": self.cfg.solver_seconds, "mip_rel_gap": 1e-6}  # cause
        res = milp(self.objective(), constraints=self.constraints(), integrality=integrality,
                   bounds=Bounds(0, upper), options=options)
        if res.x is None:
            raise RuntimeError(res.message)
        return res, res.x.reshape(4, self.p, self.t)


class RollingPlanner:
    def __init__(self, cfg):
        self.cfg = cfg
        self.inst = make_instance(cfg)
        self.stock = np.zeros(cfg.products)
        self.rows = []
        self.plan = []

    def implement(self, window, x):
        make, hold, setup, lost = x[:, :, : self.cfg.freeze]
        cost = float((hold * self.inst.holding[:, None]).sum()
                     + (np.rint(setup) * self.inst.setup_cost[:, None]).sum()
                     + lost.sum() * self.inst.lost)
        self.stock = hold[:, -1].copy()
        self.plan.append(make)
        return cost

    def run(self):
        for window in range(self.cfg.windows):
            t0 = time.perf_counter()
            res, x = WindowModel(self.inst, self.cfg, window * self.cfg.freeze, self.stock).solve()
            cost = self.implement(window, x)
            self.rows.append({"window": window, "objective": res.fun, "cost": cost,
                              "setups": int(np.rint(x[2]).sum())})
            log.info("window %d: %d nodes, %.2f s", window, res.mip_node_count,
                     time.perf_counter() - t0)
        return pd.DataFrame(self.rows)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seconds", type=float, default=PlantConfig.solver_seconds)
    ap.add_argument("--windows", type=int, default=PlantConfig.windows)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    planner = RollingPlanner(PlantConfig(solver_seconds=args.seconds, windows=args.windows))
    table = planner.run()
    plan = np.concatenate(planner.plan, axis=1)
    out = Path("plan")
    out.mkdir(exist_ok=True)
    np.savetxt(out / "production.csv", plan, fmt="%.4f", delimiter=",")
    table.to_csv(out / "windows.csv", index=False, float_format="%.4f")
    summary = {"total_cost": round(float(table.cost.sum()), 4),
               "production": round(float(plan.sum()), 4)}
    (out / "summary.json").write_text(json.dumps(summary))
    print(table.round(3).to_string(index=False))
    print(summary)


if __name__ == "__main__":
    main()
