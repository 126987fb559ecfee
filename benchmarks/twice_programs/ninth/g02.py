"""Hyper-parameter search for a churn model, then a refit on the best configuration.

Modelled on https://github.com/optuna/optuna/issues/4412 where a seeded study gave other best values in every run.
"""
import argparse
import csv
import json
import logging
import random
import time
from dataclasses import asdict, dataclass

import numpy as np
import optuna
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

logging.basicConfig(level=logging.INFO, format="%(asctime)s [%(name)s] %(message)s")
log = logging.getLogger("hpo")
optuna.logging.set_verbosity(optuna.logging.WARNING)


@dataclass
class Config:
    seed: int = 42
    rows: int = 1500
    trials: int = 24
    folds: int = 3
    startup: int = 8
    out: str = "hpo_summary.json"


def make_customers(cfg):
    rng = np.random.default_rng(cfg.seed)
    n = cfg.rows
    tenure = rng.gamma(2.0, 14.0, n)
    charges = rng.normal(65, 22, n).clip(15)
    calls = rng.poisson(1.6, n)
    contract = rng.choice(3, n, p=[0.55, 0.25, 0.2])
    fibre = rng.binomial(1, 0.45, n)
    noise = rng.normal(size=(n, 6))
    logit = (-0.9 - 0.035 * tenure + 0.018 * (charges - 65) + 0.35 * calls - 0.8 * contract
             + 0.7 * fibre + 0.25 * noise[:, 0] * noise[:, 1])
    y = rng.binomial(1, 1 / (1 + np.exp(-logit)))
    x = np.column_stack([tenure, charges, calls, contract, fibre, noise])
    cut = int(0.75 * n)
    return x[:cut], y[:cut], x[cut:], y[cut:]


def build(params, seed):
    if params["model"] == "rf":
        return RandomForestClassifier(
            n_estimators=params["n_estimators"], max_depth=params["max_depth"],
            min_samples_leaf=params["min_leaf"], max_features=params["max_features"],
            random_state=seed, n_jobs=1)
    return make_pipeline(StandardScaler(), LogisticRegression(C=params["C"], max_iter=300))


class Objective:
    def __init__(self, x, y, cfg):
        self.x, self.y, self.cfg = x, y, cfg
        self.folds = list(StratifiedKFold(cfg.folds, shuffle=True, random_state=cfg.seed).split(x, y))

    def suggest(self, trial):
        model = trial.suggest_categorical("model", ["rf", "logit"])
        if model == "rf":
            return {"model": model,
                    "n_estimators": trial.suggest_int("n_estimators", 20, 80),
                    "max_depth": trial.suggest_int("max_depth", 2, 12),
                    "min_leaf": trial.suggest_int("min_leaf", 1, 25),
                    "max_features": trial.suggest_float("max_features", 0.2, 1.0)}
        return {"model": model, "C": trial.suggest_float("C", 1e-4, 1e2, log=True)}

    def __call__(self, trial):
        params = self.suggest(trial)
        t0 = time.perf_counter()
        scores = []
        for tr, va in self.folds:
            est = build(params, self.cfg.seed).fit(self.x[tr], self.y[tr])
            scores.append(log_loss(self.y[va], est.predict_proba(self.x[va])[:, 1]))
        trial.set_user_attr("fit_sec", time.perf_counter() - t0)
        return float(np.mean(scores))


def run_search(objective, cfg):
    sampler = optuna.samplers.TPESampler(seed=cfg.seed, n_startup_trials=cfg.startup)
    study = optuna.create_study(direction="minimize", sampler=sampler, study_name="churn")
    t0 = time.time()
    study.optimize(objective, n_trials=cfg.trials, n_jobs=2)  # cause
    log.info("%d trials in %.1fs (%.2f trials/s)", len(study.trials), time.time() - t0,
             len(study.trials) / (time.time() - t0))
    return study


def write_trials(study, path):
    with open(path, "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["number", "value", "params", "fit_sec"])
        for t in study.trials:
            w.writerow([t.number, f"{t.value:.8f}", json.dumps(t.params, sort_keys=True),
                        f"{t.user_attrs['fit_sec']:.3f}"])


def main():
    ap = argparse.ArgumentParser()
    for k, v in asdict(Config()).items():
        ap.add_argument(f"--{k}", type=type(v), default=v)
    cfg = Config(**vars(ap.parse_args()))
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)
    x, y, xt, yt = make_customers(cfg)
    log.info("train %s churn rate %.3f", x.shape, y.mean())
    study = run_search(Objective(x, y, cfg), cfg)
    best = build(study.best_params, cfg.seed).fit(x, y)
    prob = best.predict_proba(xt)[:, 1]
    summary = {"config": asdict(cfg), "best_value": study.best_value, "best_params": study.best_params,
               "test_auc": roc_auc_score(yt, prob), "test_log_loss": log_loss(yt, prob)}
    write_trials(study, "trials.csv")
    with open(cfg.out, "w") as f:
        json.dump(summary, f, indent=2)
    print(f"best cv {study.best_value:.8f} test auc {summary['test_auc']:.6f} logloss {summary['test_log_loss']:.8f} {study.best_params}")


if __name__ == "__main__":
    main()
