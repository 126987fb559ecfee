"""Effect of a loyalty discount on spend by cross-fitted double machine learning.

Modelled on https://github.com/py-why/EconML/issues/245
A user fixed random_state on the estimator yet the treatment effect changed after each run.
"""
import argparse
import json
import logging
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LassoCV, LinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold

log = logging.getLogger("dml")


@dataclass
class Config:
    n_customers: int = 900
    n_controls: int = 8
    n_splits: int = 3
    trees: int = 40
    min_leaf: int = 8
    true_effect: float = 1.7
    seed: int = 504
    out: str = "effect"


def make_customers(cfg):
    """Customer table: controls W, heterogeneity X, treatment T and outcome Y."""
    rng = np.random.default_rng(cfg.seed)
    W = rng.normal(size=(cfg.n_customers, cfg.n_controls))
    age = rng.integers(18, 75, size=cfg.n_customers)
    urban = rng.random(cfg.n_customers) < 0.6
    discount = (
        5
        + 1.2 * np.tanh(W[:, 0])
        + 0.8 * (W[:, 1] > 0)
        + 0.5 * urban
        + rng.normal(scale=1.0, size=cfg.n_customers)
    )
    effect = cfg.true_effect + 0.02 * (age - 45)
    spend = (
        40
        + effect * discount
        + 3 * np.sin(W[:, 0])
        + 2 * W[:, 1] * W[:, 2]
        + rng.normal(scale=2.0, size=cfg.n_customers)
    )
    frame = pd.DataFrame(W, columns=[f"w{i}" for i in range(cfg.n_controls)])
    frame["age"] = age
    frame["urban"] = urban.astype(int)
    frame["discount"] = discount
    frame["spend"] = spend
    return frame


class LinearDML:
    """Partially linear model with residual-on-residual final stage."""

    def __init__(self, model_y, model_t, n_splits=2, random_state=None):
        self.model_y = model_y
        self.model_t = model_t
        self.n_splits = n_splits
        self.random_state = random_state

    def fit(self, Y, T, X, W):
        controls = np.column_stack([X, W])
        self.res_y_ = np.zeros_like(Y, dtype=float)
        self.res_t_ = np.zeros_like(T, dtype=float)
        self.nuisance_ = []
        folds = KFold(self.n_splits, shuffle=True, random_state=self.random_state)
        for k, (tr, te) in enumerate(folds.split(controls)):
            my = clone(self.model_y).fit(controls[tr], Y[tr])
            mt = clone(self.model_t).fit(controls[tr], T[tr])
            py, pt = my.predict(controls[te]), mt.predict(controls[te])
            self.res_y_[te] = Y[te] - py
            self.res_t_[te] = T[te] - pt
            self.nuisance_.append((r2_score(Y[te], py), r2_score(T[te], pt)))
            log.info("fold %d nuisance r2 y=%.2f t=%.2f", k, *self.nuisance_[-1])
        self._mean_x = X.mean(axis=0)
        Z = self._design(X) * self.res_t_[:, None]
        self.final_ = LinearRegression(fit_intercept=False).fit(Z, self.res_y_)
        resid = self.res_y_ - self.final_.predict(Z)
        bread = np.linalg.inv(Z.T @ Z)
        meat = (Z * resid[:, None]).T @ (Z * resid[:, None])
        self.cov_ = bread @ meat @ bread
        return self

    def _design(self, X):
        return np.column_stack([np.ones(len(X)), X - self._mean_x])

    def effect(self, X):
        return self._design(X) @ self.final_.coef_

    def interval(self, X, alpha=0.05):
        D = self._design(X)
        se = np.sqrt(np.einsum("ij,jk,ik->i", D, self.cov_, D))
        z = 1.959963985
        te = D @ self.final_.coef_
        return te - z * se, te + z * se


def fit_forest_dml(cfg, frame):
    Y, T = frame["spend"].to_numpy(), frame["discount"].to_numpy()
    X = frame[["age", "urban"]].to_numpy(float)
    W = frame[[c for c in frame if c.startswith("w")]].to_numpy()
    est = LinearDML(
        model_y=RandomForestRegressor(cfg.trees, min_samples_leaf=cfg.min_leaf),  # cause
        model_t=RandomForestRegressor(cfg.trees, min_samples_leaf=cfg.min_leaf),  # cause
        n_splits=cfg.n_splits,
        random_state=cfg.seed,
    )
    return est.fit(Y, T, X, W), X


def fit_lasso_dml(cfg, frame):
    Y, T = frame["spend"].to_numpy(), frame["discount"].to_numpy()
    X = frame[["age", "urban"]].to_numpy(float)
    W = frame[[c for c in frame if c.startswith("w")]].to_numpy()
    est = LinearDML(
        model_y=LassoCV(cv=3, random_state=cfg.seed),
        model_t=LassoCV(cv=3, random_state=cfg.seed),
        n_splits=cfg.n_splits,
        random_state=cfg.seed,
    )
    return est.fit(Y, T, X, W), X


def segment_table(frame, est, X):
    lo, hi = est.interval(X)
    out = pd.DataFrame(
        {
            "band": pd.cut(frame["age"], [17, 30, 45, 60, 75]).astype(str),
            "effect": est.effect(X),
            "lo": lo,
            "hi": hi,
        }
    )
    return out.groupby("band", sort=True).mean().round(5)


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--trees", type=int, default=Config.trees)
    ap.add_argument("--seed", type=int, default=Config.seed)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    cfg = Config(trees=args.trees, seed=args.seed)
    started = time.time()
    frame = make_customers(cfg)
    out = Path(cfg.out)
    out.mkdir(exist_ok=True)
    frame.to_csv(out / "customers.csv", index=False)

    report = {"config": asdict(cfg)}
    for name, fit in [("lasso", fit_lasso_dml), ("forest", fit_forest_dml)]:
        est, X = fit(cfg, frame)
        lo, hi = est.interval(X)
        report[name] = {
            "ate": round(float(est.effect(X).mean()), 6),
            "lo": round(float(lo.mean()), 6),
            "hi": round(float(hi.mean()), 6),
        }
        table = segment_table(frame, est, X)
        table.to_csv(out / f"segments_{name}.csv")
        print(f"== {name}: ATE {report[name]['ate']:.5f} "
              f"[{report[name]['lo']:.5f}, {report[name]['hi']:.5f}]")
        print(table.to_string())
    (out / "report.json").write_text(json.dumps(report, indent=1))
    log.info("finished in %.2fs", time.time() - started)


if __name__ == "__main__":
    main()
