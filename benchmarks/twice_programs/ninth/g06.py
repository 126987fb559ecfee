"""Cost-aware model search over several estimator families on a tabular regression task.

Modelled on https://github.com/microsoft/FLAML/issues/151 where the fitted model could not be reproduced with a seed.
"""
import argparse
import json
import logging
import random
import sqlite3
import time

import numpy as np
from sklearn.metrics import mean_squared_error

from g06_automl.learners import SPACES, LocalSearch, decode, make_model

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("automl")


def make_data(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 12))
    y = (np.sin(3 * x[:, 0]) * x[:, 1] + np.abs(x[:, 2]) ** 1.5 + 0.7 * (x[:, 3] > 0.2) * x[:, 4]
         + 0.3 * x[:, 5] ** 2 + rng.normal(0, 0.15, n))
    a, b = int(0.6 * n), int(0.8 * n)
    return (x[:a], y[:a]), (x[a:b], y[a:b]), (x[b:], y[b:])


class FamilyState:
    """Book-keeping for one estimator family: what was spent and what it brought."""

    def __init__(self, family, rng):
        self.search = LocalSearch(family, rng)
        self.family = family
        self.total_cost = 0.0
        self.cost_since_gain = 0.0
        self.last_gain_cost = 0.0
        self.last_gain = 0.0

    def estimated_cost_for_improvement(self, global_best):
        own = max(self.cost_since_gain, self.last_gain_cost)
        gap = max(self.search.best - global_best, 0.0)
        if gap > 0 and self.last_gain > 0:
            speed = self.last_gain / max(self.last_gain_cost, 1e-9)
            own = max(own, 2.0 * gap / speed)
        elif gap > 0:
            own = max(own, 2.0 * self.total_cost)
        return own

    def account(self, cost, gain):
        self.total_cost += cost
        self.cost_since_gain += cost
        if gain > 0 and np.isfinite(gain):
            self.last_gain, self.last_gain_cost = gain, self.cost_since_gain
            self.cost_since_gain = 0.0
        elif gain > 0:
            self.last_gain_cost, self.cost_since_gain = cost, 0.0


class Search:
    def __init__(self, train, valid, seed, db):
        self.train, self.valid, self.seed = train, valid, seed
        self.rng = np.random.default_rng(seed)
        self.states = [FamilyState(f, self.rng) for f in SPACES]
        self.best = (np.inf, None, None)
        self.db = db
        db.execute("CREATE TABLE trials (id INTEGER PRIMARY KEY, family TEXT, config TEXT, loss REAL)")

    def evaluate(self, family, cfg):
        start = time.perf_counter()
        model = make_model(family, cfg, self.seed).fit(*self.train)
        loss = mean_squared_error(self.valid[1], model.predict(self.valid[0]))
        cost = time.perf_counter() - start  # cause
        return loss, cost

    def pick(self, t):
        """Round-robin first, then sample a family in inverse proportion to its expected cost."""
        if t < len(self.states):
            return self.states[t]
        eci = np.array([s.estimated_cost_for_improvement(self.best[0]) for s in self.states])
        inv = 1.0 / np.maximum(eci, 1e-9)
        return self.states[self.rng.choice(len(self.states), p=inv / inv.sum())]

    def run(self, trials):
        for t in range(trials):
            st = self.pick(t)
            unit = st.search.propose()
            cfg = decode(st.family, unit)
            loss, cost = self.evaluate(st.family, cfg)
            st.account(cost, st.search.tell(unit, loss))
            self.db.execute("INSERT INTO trials VALUES (?,?,?,?)", (t, st.family, json.dumps(cfg), loss))
            if loss < self.best[0]:
                self.best = (loss, st.family, cfg)
                log.info("trial %d: %s loss %.5f", t, st.family, loss)
        self.db.commit()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=3)
    p.add_argument("--rows", type=int, default=700)
    p.add_argument("--trials", type=int, default=160)
    p.add_argument("--db", default="search.sqlite")
    args = p.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    train, valid, test = make_data(args.rows, args.seed)
    db = sqlite3.connect(args.db)
    t0 = time.time()
    search = Search(train, valid, args.seed, db)
    search.run(args.trials)
    log.info("search: %d trials, %.2f trials/s", args.trials, args.trials / (time.time() - t0))
    loss, family, cfg = search.best
    model = make_model(family, cfg, args.seed).fit(np.vstack([train[0], valid[0]]), np.hstack([train[1], valid[1]]))
    test_mse = mean_squared_error(test[1], model.predict(test[0]))
    tries = {s.family: s.search.tries for s in search.states}
    with open("best.json", "w") as f:
        json.dump({"family": family, "config": cfg, "valid_mse": loss, "test_mse": test_mse, "tries": tries}, f, indent=1)
    db.close()
    print(f"{family} valid {loss:.8f} test {test_mse:.8f} tries {tries}")


if __name__ == "__main__":
    main()
