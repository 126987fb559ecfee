"""A small tuner of gradient boosting for tabular data, with a cost-frugal local search.

Modelled on https://github.com/microsoft/FLAML/issues/151
A user asks how the result of AutoML.fit() can be had twice; random_state is not enough.
"""
import argparse
import json
import logging
import time

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

log = logging.getLogger("tuner")

SPACE = {
    "learning_rate": (0.01, 0.5, "log"),
    "max_iter": (5, 40, "int"),
    "max_leaf_nodes": (3, 31, "int"),
    "min_samples_leaf": (3, 60, "int"),
    "l2_regularization": (1e-4, 10.0, "log"),
    "max_features": (0.3, 1.0, "lin"),
}


def decode(u):
    cfg = {}
    for v, (name, (lo, hi, kind)) in zip(u, SPACE.items()):
        if kind == "log":
            cfg[name] = float(np.exp(np.log(lo) + v * (np.log(hi) - np.log(lo))))
        elif kind == "int":
            cfg[name] = int(round(lo + v * (hi - lo)))
        else:
            cfg[name] = float(lo + v * (hi - lo))
    return cfg


class Objective:
    def __init__(self, x, y, folds, seed):
        self.x, self.y, self.seed = x, y, seed
        self.splits = list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(x, y))

    def __call__(self, cfg):
        scores = []
        for tr, va in self.splits:
            model = HistGradientBoostingClassifier(random_state=self.seed, early_stopping=False, **cfg)
            model.fit(self.x[tr], self.y[tr])
            scores.append(log_loss(self.y[va], model.predict_proba(self.x[va])))
        return float(np.mean(scores))


class LocalSearch:
    """Random directions with a step that shrinks when nothing improves."""

    def __init__(self, dim, seed):
        self.rng = np.random.default_rng(seed)
        self.best_u = np.full(dim, 0.25)
        self.best = np.inf
        self.step = 0.35
        self.stale = 0

    def ask(self):
        if not np.isfinite(self.best):
            return self.best_u
        d = self.rng.normal(size=self.best_u.shape)
        return np.clip(self.best_u + self.step * d / np.linalg.norm(d), 0, 1)

    def tell(self, u, value):
        if value < self.best:
            self.best, self.best_u, self.stale = value, u, 0
        else:
            self.stale += 1
            if self.stale >= 6:
                self.step, self.stale = max(0.05, self.step * 0.7), 0


def search(objective, args):
    opt = LocalSearch(len(SPACE), args.seed)
    trials = []
    start = time.monotonic()
    while len(trials) < args.max_trials:
        if time.monotonic() - start > args.time_budget:  # cause
            break
        u = opt.ask()
        cfg = decode(u)
        t0 = time.monotonic()
        value = objective(cfg)
        opt.tell(u, value)
        trials.append({"trial": len(trials), "logloss": value, "config": cfg})
        log.info("trial %3d logloss %.5f best %.5f (%.2fs)", len(trials), value, opt.best,
                 time.monotonic() - t0)
    return opt, trials


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--rows", type=int, default=900)
    ap.add_argument("--time-budget", type=float, default=5.0, help="seconds")
    ap.add_argument("--max-trials", type=int, default=400)
    ap.add_argument("--folds", type=int, default=2)
    ap.add_argument("--seed", type=int, default=1234)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")

    x, y = make_classification(args.rows, 15, n_informative=8, n_redundant=3, flip_y=0.05,
                               class_sep=0.8, random_state=args.seed)
    hold = len(x) // 4
    xt, yt, xh, yh = x[:-hold], y[:-hold], x[-hold:], y[-hold:]
    opt, trials = search(Objective(xt, yt, args.folds, args.seed), args)

    best_cfg = decode(opt.best_u)
    top = sorted(trials, key=lambda t: t["logloss"])[:5]
    probs = []
    for t in top:
        m = HistGradientBoostingClassifier(random_state=args.seed, early_stopping=False, **t["config"])
        probs.append(m.fit(xt, yt).predict_proba(xh))
    base = ExtraTreesClassifier(50, random_state=args.seed).fit(xt, yt).predict_proba(xh)
    report = {
        "trials": len(trials),
        "trial_values": [t["logloss"] for t in trials],
        "best_logloss": opt.best,
        "best_config": best_cfg,
        "holdout_ensemble": float(log_loss(yh, np.mean(probs, axis=0))),
        "holdout_baseline": float(log_loss(yh, base)),
    }
    with open("automl_report.json", "w") as fh:
        json.dump(report, fh, indent=1)
    log.info("%d trials, holdout %.5f (baseline %.5f)", report["trials"],
             report["holdout_ensemble"], report["holdout_baseline"])


if __name__ == "__main__":
    main()
