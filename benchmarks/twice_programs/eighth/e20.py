"""https://github.com/IMMM-SFA/cerf/pull/132 : regions compete concurrently on joblib's threading backend and break ties with draws
from the global NumPy stream, so seeded runs are not reproducible; fixed with a generator of its own for each competition."""
import json
import logging
import time

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

logging.basicConfig(level=logging.INFO, format="%(asctime)s [%(threadName)s] %(message)s")

TECHS = {"gas_cc": (9, 2), "solar": (16, 1), "wind": (12, 2), "nuclear": (3, 4)}
STATES = ["arizona", "colorado", "idaho", "montana", "nevada", "oregon", "utah", "wyoming"]


def stage(state, size=40):
    """Net locational cost in full dollars and the suitable cells of one state."""
    rs = np.random.RandomState(sum(map(ord, state)))
    base = rs.rand(len(TECHS), size, size)
    for _ in range(3):
        base = (base + np.roll(base, 1, 1) + np.roll(base, 1, 2) + np.roll(base, -1, 2)) / 4
    nlc = np.round(40 * (base - base.min()) / (base.max() - base.min()))
    suitable = rs.rand(len(TECHS), size, size) > 0.25
    return nlc, suitable


class Competition:
    """Technologies compete for grid cells until all planned plants are sited."""

    def __init__(self, state, seed_value):
        self.state = state
        self.nlc, self.suitable = stage(state)
        self.names = list(TECHS)
        self.plan = [TECHS[n][0] for n in self.names]
        self.rng = np.random.RandomState(seed_value)
        self.sited = []

    def buffer(self, y, x, r):
        s = self.nlc.shape[1]
        return slice(max(0, y - r), min(s, y + r + 1)), slice(max(0, x - r), min(s, x + r + 1))

    def winners(self):
        cost = np.where(self.suitable, self.nlc, np.inf)
        for k, left in enumerate(self.plan):
            if left == 0:
                cost[k] = np.inf
        return cost

    def break_tie(self, cells):
        return cells[np.random.choice(len(cells))]  # cause

    def demand_noise(self):
        return float(self.rng.normal(0, 0.1))

    def step(self):
        cost = self.winners()
        best = cost.min()
        if not np.isfinite(best):
            return False
        k, y, x = self.break_tie(np.argwhere(cost == best))
        ys, xs = self.buffer(y, x, TECHS[self.names[k]][1])
        self.suitable[:, ys, xs] = False
        self.plan[k] -= 1
        self.sited.append((self.state, self.names[k], int(y), int(x), float(best + self.demand_noise())))
        near = np.abs(np.arange(self.nlc.shape[1]) - x)
        self.nlc[k] += np.round(6 * np.exp(-near / 5.0))
        return True

    def run(self):
        t = time.perf_counter()
        while sum(self.plan) and self.step():
            pass
        logging.info("%s sited %d in %.3f s", self.state, len(self.sited), time.perf_counter() - t)
        return self.sited


def process_state(state, year, seed_value):
    sites = []
    for y in range(12):
        comp = Competition(state, seed_value + y)
        sites += [(year + 5 * y,) + s for s in comp.run()]
    return sites


def summarise(frame):
    table = frame.groupby(["state", "tech"])["cost"].agg(["sum", "mean", "count"]).round(6)
    spread = frame.groupby("state")[["y", "x"]].std().mean(axis=1)
    return {"table": {"/".join(k): v for k, v in table.to_dict("index").items()}, "spread": spread.to_dict()}


def main(seed_value=0, n_jobs=2):
    np.random.seed(seed_value)
    start = time.time()
    results = Parallel(n_jobs=n_jobs, backend="threading")(delayed(process_state)(s, 2020, seed_value) for s in STATES)
    frame = pd.DataFrame([r for part in results for r in part], columns=["year", "state", "tech", "y", "x", "cost"])
    frame.to_csv("sites.csv", index=False)
    with open("summary.json", "w") as f:
        json.dump(summarise(frame), f, indent=1)
    print("sited", len(frame), "plants, total cost %.3f" % frame["cost"].sum(), "in %.1f s" % (time.time() - start))


if __name__ == "__main__":
    main()
