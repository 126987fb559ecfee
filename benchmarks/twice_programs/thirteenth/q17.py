"""Hyperparameter search for a gradient boosting regressor.

Report: https://github.com/optuna/optuna/issues/6062
A seeded study is optimised with several jobs and the best model is refitted.
"""
import argparse
import json
import logging
import time
from dataclasses import dataclass
from pathlib import Path

import lightgbm as lgb
import numpy as np
import optuna
from sklearn.datasets import make_friedman1
from sklearn.metrics import mean_squared_error, r2_score
from sklearn.model_selection import KFold, train_test_split

log = logging.getLogger("tuning")


@dataclass
class TuningConfig:
    rows: int = 700
    noise: float = 1.1
    trials: int = 38
    jobs: int = 2
    folds: int = 3
    seed: int = 42
    out: str = "tuning"


def load(cfg: TuningConfig):
    x, y = make_friedman1(n_samples=cfg.rows, n_features=12, noise=cfg.noise, random_state=cfg.seed)
    return train_test_split(x, y, test_size=0.25, random_state=cfg.seed)


def rmse(a, b):
    return float(np.sqrt(mean_squared_error(a, b)))


class Objective:
    def __init__(self, x, y, cfg: TuningConfig):
        self.x, self.y, self.cfg = x, y, cfg
        self.folds = list(KFold(cfg.folds, shuffle=True, random_state=cfg.seed).split(x))

    @staticmethod
    def space(trial: optuna.Trial) -> dict:
        return {
            "n_estimators": trial.suggest_int("n_estimators", 30, 160),
            "num_leaves": trial.suggest_int("num_leaves", 4, 48),
            "learning_rate": trial.suggest_float("learning_rate", 0.01, 0.3, log=True),
            "min_child_samples": trial.suggest_int("min_child_samples", 3, 40),
            "subsample": trial.suggest_float("subsample", 0.5, 1.0),
            "reg_lambda": trial.suggest_float("reg_lambda", 1e-3, 10.0, log=True),
        }

    def model(self, params: dict):
        return lgb.LGBMRegressor(
            **params,
            subsample_freq=1,
            random_state=self.cfg.seed,
            n_jobs=1,
            deterministic=True,
            force_row_wise=True,
            verbose=-1,
        )

    def __call__(self, trial: optuna.Trial) -> float:
        params = self.space(trial)
        scores = []
        for train, test in self.folds:
            m = self.model(params).fit(self.x[train], self.y[train])
            scores.append(rmse(self.y[test], m.predict(self.x[test])))
        return float(np.mean(scores))


class Tuner:
    def __init__(self, cfg: TuningConfig):
        self.cfg = cfg
        self.x, self.x_test, self.y, self.y_test = load(cfg)
        self.objective = Objective(self.x, self.y, cfg)

    def search(self) -> optuna.Study:
        sampler = optuna.samplers.TPESampler(seed=self.cfg.seed, n_startup_trials=8)
        study = optuna.create_study(direction="minimize", sampler=sampler, study_name="lgbm")
        study.optimize(self.objective, n_trials=self.cfg.trials, n_jobs=self.cfg.jobs)  # cause
        return study

    def refit(self, study: optuna.Study) -> dict:
        m = self.objective.model(study.best_params).fit(self.x, self.y)
        train, test = m.predict(self.x), m.predict(self.x_test)
        return {
            "rmse_train": round(rmse(self.y, train), 6),
            "rmse_test": round(rmse(self.y_test, test), 6),
            "r2_test": round(float(r2_score(self.y_test, test)), 6),
        }


def trial_table(study: optuna.Study) -> str:
    lines = ["number,value," + ",".join(sorted(study.best_params))]
    for t in study.trials:
        values = ",".join(f"{t.params[k]:.6g}" for k in sorted(t.params))
        lines.append(f"{t.number},{t.value:.6f},{values}")
    return "\n".join(lines) + "\n"


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    ap = argparse.ArgumentParser()
    ap.add_argument("--trials", type=int, default=TuningConfig.trials)
    ap.add_argument("--jobs", type=int, default=TuningConfig.jobs)
    ns = ap.parse_args()
    cfg = TuningConfig(trials=ns.trials, jobs=ns.jobs)
    t0 = time.time()
    tuner = Tuner(cfg)
    study = tuner.search()
    metrics = tuner.refit(study)
    out = Path(cfg.out)
    out.mkdir(exist_ok=True)
    (out / "trials.csv").write_text(trial_table(study))
    (out / "best.json").write_text(json.dumps({"params": study.best_params, **metrics}, indent=1))
    print("best score (RMSE): %.4f" % study.best_value)
    print("best parameters:", {k: round(v, 5) for k, v in study.best_params.items()})
    print(metrics)
    log.info("%d trials in %.1fs", len(study.trials), time.time() - t0)


if __name__ == "__main__":
    main()
