"""https://github.com/microsoft/FLAML/pull/1369 - the LightGBM estimator has a callback that stops boosting when the time budget would be exceeded, so the number of trees depends on the clock."""
import json
import os
import random
import time
from dataclasses import dataclass, field

import lightgbm as lgb
import numpy as np
from lightgbm.callback import EarlyStopException

SEED = 2024


def make_table(n=4000, d=14):
    rng = np.random.default_rng(SEED)
    x = rng.normal(size=(n, d))
    logits = x[:, 0] * x[:, 1] - 1.2 * np.abs(x[:, 2]) + np.sin(3 * x[:, 3]) + 0.4 * x[:, 4] ** 2
    y = (logits + rng.logistic(size=n) * 0.7 > -0.4).astype(int)
    x[rng.random(x.shape) < 0.03] = np.nan
    cut = int(0.7 * n)
    return (x[:cut], y[:cut]), (x[cut:], y[cut:])


@dataclass
class TimedEstimator:
    params: dict
    budget: float
    rounds: int = 400
    log: list = field(default_factory=list)

    def _callback(self, start, deadline):
        def inner(env):
            now = time.time()
            if env.iteration == 0:
                self.per_iter = now - start
            if now + self.per_iter > deadline:  # cause
                raise EarlyStopException(env.iteration, env.evaluation_result_list)
        inner.order = 30
        return inner

    def fit(self, train, valid):
        start = time.time()
        dtrain = lgb.Dataset(train[0], train[1], params={"verbose": -1})
        dvalid = lgb.Dataset(valid[0], valid[1], reference=dtrain)
        self.booster = lgb.train(
            self.params, dtrain, num_boost_round=self.rounds, valid_sets=[dvalid], valid_names=["valid"],
            callbacks=[lgb.record_evaluation(self.__dict__.setdefault("evals", {})), self._callback(start, start + self.budget)])
        self.seconds = time.time() - start
        return self

    def logloss(self, data):
        p = np.clip(self.booster.predict(data[0], num_iteration=-1), 1e-7, 1 - 1e-7)
        y = data[1]
        return float(-(y * np.log(p) + (1 - y) * np.log(1 - p)).mean())


def search_space(rng, n):
    for _ in range(n):
        yield {"num_leaves": int(rng.choice([7, 15, 31])), "learning_rate": float(rng.choice([0.02, 0.05, 0.1])),
               "min_data_in_leaf": int(rng.integers(5, 40)), "bagging_fraction": 0.8, "bagging_freq": 1,
               "feature_fraction": 0.8, "objective": "binary", "seed": SEED, "deterministic": True,
               "force_row_wise": True, "num_threads": 1, "verbose": -1}


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    train, valid = make_table()
    started = time.strftime("%Y-%m-%dT%H:%M:%S")
    print("AutoML run started", started, "pid", os.getpid())
    board = []
    for k, params in enumerate(search_space(np.random.default_rng(SEED), 5)):
        est = TimedEstimator(params, budget=0.45).fit(train, valid)
        row = {"trial": k, "trees": est.booster.num_trees(), "valid_logloss": est.logloss(valid),
               "leaves": params["num_leaves"], "seconds": est.seconds}
        board.append(row)
        print(f"trial {k}: trees {row['trees']:4d} logloss {row['valid_logloss']:.6f} in {est.seconds:.2f}s")
    best = min(board, key=lambda r: r["valid_logloss"])
    print("best trial", best["trial"])
    with open("leaderboard.json", "w") as f:
        json.dump({"started": started, "board": board, "best": best["trial"]}, f, indent=1)


if __name__ == "__main__":
    main()
