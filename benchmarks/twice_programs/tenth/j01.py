"""Modelled on https://github.com/NicolasHug/Surprise/issues/212

Grid search over a matrix-factorisation recommender: the scores of the search
are not the same from run to run although the seeds are fixed.
"""
import csv
import itertools
import json
import logging
import random
import time
from dataclasses import asdict, dataclass, field

import numpy as np
from joblib import Parallel, delayed

log = logging.getLogger("gridsearch")


@dataclass
class Config:
    seed: int = 123
    n_users: int = 180
    n_items: int = 120
    n_ratings: int = 5200
    n_folds: int = 3
    n_jobs: int = 2
    n_epochs: int = 30
    grid: dict = field(
        default_factory=lambda: {
            "n_factors": [4, 10],
            "lr": [0.8, 1.6],
            "reg": [0.01, 0.05],
        }
    )


def setup_logging():
    fmt = "%(asctime)s %(name)s %(levelname)s %(message)s"
    logging.basicConfig(
        level=logging.INFO,
        format=fmt,
        handlers=[logging.StreamHandler(), logging.FileHandler("gridsearch.log")],
    )


def make_ratings(cfg):
    """Synthetic ratings with a low-rank structure plus user and item biases."""
    rng = np.random.default_rng(cfg.seed)
    u_lat = rng.normal(0, 0.6, (cfg.n_users, 3))
    i_lat = rng.normal(0, 0.6, (cfg.n_items, 3))
    bu = rng.normal(0, 0.35, cfg.n_users)
    bi = rng.normal(0, 0.35, cfg.n_items)
    flat = rng.choice(cfg.n_users * cfg.n_items, cfg.n_ratings, replace=False)
    users, items = np.divmod(flat, cfg.n_items)
    raw = 3.4 + bu[users] + bi[items] + np.sum(u_lat[users] * i_lat[items], axis=1)
    raw = raw + rng.normal(0, 0.4, cfg.n_ratings)
    ratings = np.clip(np.round(raw * 2) / 2, 1.0, 5.0)
    return users, items, ratings


class MatrixFactorization:
    def __init__(self, n_users, n_items, n_factors=8, lr=1.0, reg=0.02,
                 n_epochs=30, init_std=0.1):
        self.n_users = n_users
        self.n_items = n_items
        self.n_factors = n_factors
        self.lr = lr
        self.reg = reg
        self.n_epochs = n_epochs
        self.init_std = init_std

    def fit(self, users, items, ratings):
        n = self.n_users + self.n_items
        factors = np.random.normal(0.0, self.init_std, (n, self.n_factors))  # cause
        P, Q = factors[: self.n_users].copy(), factors[self.n_users:].copy()
        bu = np.zeros(self.n_users)
        bi = np.zeros(self.n_items)
        mu = ratings.mean()
        cnt_u = np.maximum(np.bincount(users, minlength=self.n_users), 1)
        cnt_i = np.maximum(np.bincount(items, minlength=self.n_items), 1)
        for _ in range(self.n_epochs):
            pred = mu + bu[users] + bi[items] + np.sum(P[users] * Q[items], axis=1)
            err = ratings - pred
            bu += self.lr * (np.bincount(users, err, self.n_users) / cnt_u - self.reg * bu)
            bi += self.lr * 0.5 * (np.bincount(items, err, self.n_items) / cnt_i - self.reg * bi)
            gP = np.zeros_like(P)
            gQ = np.zeros_like(Q)
            np.add.at(gP, users, err[:, None] * Q[items])
            np.add.at(gQ, items, err[:, None] * P[users])
            P += self.lr * (gP / cnt_u[:, None] - self.reg * P)
            Q += self.lr * (gQ / cnt_i[:, None] - self.reg * Q)
        self.P, self.Q, self.bu, self.bi, self.mu = P, Q, bu, bi, mu
        return self

    def predict(self, users, items):
        est = self.mu + self.bu[users] + self.bi[items]
        est = est + np.sum(self.P[users] * self.Q[items], axis=1)
        return np.clip(est, 1.0, 5.0)


def rmse(a, b):
    return float(np.sqrt(np.mean((a - b) ** 2)))


def mae(a, b):
    return float(np.mean(np.abs(a - b)))


def kfold(n, k, seed):
    order = np.random.RandomState(seed).permutation(n)
    for part in np.array_split(order, k):
        mask = np.ones(n, dtype=bool)
        mask[part] = False
        yield np.flatnonzero(mask), part


def fit_and_score(shape, params, n_epochs, data, train_idx, test_idx):
    users, items, ratings = data
    algo = MatrixFactorization(*shape, n_epochs=n_epochs, **params)
    algo.fit(users[train_idx], items[train_idx], ratings[train_idx])
    est = algo.predict(users[test_idx], items[test_idx])
    return {"rmse": rmse(est, ratings[test_idx]), "mae": mae(est, ratings[test_idx])}


class GridSearchCV:
    def __init__(self, grid, n_folds, n_jobs, seed, n_epochs):
        self.grid = grid
        self.n_folds = n_folds
        self.n_jobs = n_jobs
        self.seed = seed
        self.n_epochs = n_epochs

    def combinations(self):
        keys = list(self.grid)
        return [dict(zip(keys, vals)) for vals in itertools.product(*self.grid.values())]

    def fit(self, shape, data):
        combos = self.combinations()
        folds = list(kfold(len(data[2]), self.n_folds, self.seed))
        jobs = [(c, f) for c in range(len(combos)) for f in range(len(folds))]
        log.info("%d combinations x %d folds", len(combos), len(folds))
        out = Parallel(n_jobs=self.n_jobs)(  # cause
            delayed(fit_and_score)(shape, combos[c], self.n_epochs, data, *folds[f])
            for c, f in jobs
        )
        self.cv_results = []
        for c, params in enumerate(combos):
            scores = [out[j] for j, (cc, _) in enumerate(jobs) if cc == c]
            row = dict(params)
            for m in ("rmse", "mae"):
                vals = [s[m] for s in scores]
                row[f"mean_{m}"] = float(np.mean(vals))
                row[f"std_{m}"] = float(np.std(vals))
            self.cv_results.append(row)
        best = min(range(len(combos)), key=lambda c: self.cv_results[c]["mean_rmse"])
        self.best_params = combos[best]
        self.best_score = self.cv_results[best]["mean_rmse"]
        return self


def write_results(rows, path):
    with open(path, "w", newline="") as fh:
        w = csv.DictWriter(fh, fieldnames=list(rows[0]))
        w.writeheader()
        for r in rows:
            w.writerow({k: (f"{v:.6f}" if isinstance(v, float) else v) for k, v in r.items()})


def main():
    cfg = Config()
    setup_logging()
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)
    log.info("config %s", json.dumps(asdict(cfg), sort_keys=True))

    data = make_ratings(cfg)
    hold = np.arange(len(data[2])) % 10 == 0
    train = tuple(a[~hold] for a in data)
    test = tuple(a[hold] for a in data)
    log.info("train %d ratings, held out %d", len(train[2]), len(test[2]))

    t0 = time.time()
    gs = GridSearchCV(cfg.grid, cfg.n_folds, cfg.n_jobs, cfg.seed, cfg.n_epochs)
    gs.fit((cfg.n_users, cfg.n_items), train)
    log.info("search took %.2f s", time.time() - t0)
    for row in gs.cv_results:
        log.info("k=%d lr=%.2f reg=%.2f rmse %.5f +- %.5f mae %.5f", row["n_factors"],
                 row["lr"], row["reg"], row["mean_rmse"], row["std_rmse"], row["mean_mae"])

    final = MatrixFactorization(cfg.n_users, cfg.n_items, n_epochs=cfg.n_epochs, **gs.best_params)
    final.fit(*train)
    est = final.predict(test[0], test[1])
    summary = {
        "best_params": gs.best_params,
        "best_cv_rmse": round(gs.best_score, 6),
        "test_rmse": round(rmse(est, test[2]), 6),
        "test_mae": round(mae(est, test[2]), 6),
    }
    write_results(gs.cv_results, "cv_results.csv")
    with open("summary.json", "w") as fh:
        json.dump(summary, fh, indent=2, sort_keys=True)
    print("best params", gs.best_params)
    print(f"cv rmse {gs.best_score:.5f}  test rmse {summary['test_rmse']:.5f}")


if __name__ == "__main__":
    main()
