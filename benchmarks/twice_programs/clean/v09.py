"""Hyper-parameter search with Optuna and LightGBM, stored in SQLite.

Output follows Optuna (https://github.com/optuna/optuna-examples, lightgbm/lightgbm_simple.py): the "[I ...] Trial 0
finished with value" lines, trials_dataframe with datetime_start/complete and duration, a study in an RDB.
"""
import logging
import os
import sys
import time
import uuid
from datetime import datetime
from pathlib import Path

import lightgbm as lgb
import numpy as np
import optuna

N_TRIALS = 12


def make_data(seed=3, n=500):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 10))
    z = 1.4 * x[:, 0] - x[:, 1] * x[:, 2] + np.sin(2 * x[:, 3]) + 0.4 * rng.normal(size=n)
    return x, (z > 0).astype(int)


def folds(n, k=3, seed=0):
    idx = np.random.default_rng(seed).permutation(n)
    return [(np.setdiff1d(idx, part), np.sort(part)) for part in np.array_split(idx, k)]


class Objective:
    def __init__(self, x, y):
        self.x, self.y = x, y
        self.folds = folds(len(y))

    def __call__(self, trial):
        t = time.perf_counter()
        param = {
            "objective": "binary", "metric": "binary_logloss", "verbosity": -1, "boosting_type": "gbdt",
            "num_threads": 1, "seed": 1, "deterministic": True, "force_row_wise": True,
            "lambda_l1": trial.suggest_float("lambda_l1", 1e-8, 10.0, log=True),
            "lambda_l2": trial.suggest_float("lambda_l2", 1e-8, 10.0, log=True),
            "num_leaves": trial.suggest_int("num_leaves", 2, 32),
            "feature_fraction": trial.suggest_float("feature_fraction", 0.4, 1.0),
            "learning_rate": trial.suggest_float("learning_rate", 0.02, 0.3, log=True),
            "min_child_samples": trial.suggest_int("min_child_samples", 5, 60),
        }
        scores = []
        for i, (tr, va) in enumerate(self.folds):
            gbm = lgb.train(param, lgb.Dataset(self.x[tr], label=self.y[tr]), num_boost_round=20)
            p = np.clip(gbm.predict(self.x[va]), 1e-9, 1 - 1e-9)
            y = self.y[va]
            scores.append(float(-(y * np.log(p) + (1 - y) * np.log(1 - p)).mean()))
            trial.report(float(np.mean(scores)), i)
            if trial.should_prune():
                raise optuna.TrialPruned()
        trial.set_user_attr("fit_seconds", time.perf_counter() - t)
        trial.set_user_attr("pid", os.getpid())
        return float(np.mean(scores))


def report(study, folder):
    df = study.trials_dataframe()
    df.to_csv(folder / "trials.csv", index=False)
    df.to_pickle(folder / "trials.pkl")
    done = [t for t in study.trials if t.state == optuna.trial.TrialState.COMPLETE]
    pruned = [t for t in study.trials if t.state == optuna.trial.TrialState.PRUNED]
    print("Study statistics: ")
    print("  Number of finished trials: ", len(study.trials))
    print("  Number of pruned trials: ", len(pruned))
    print("  Number of complete trials: ", len(done))
    best = study.best_trial
    print("Best trial:")
    print("  Number:", best.number)
    print("  Value: {}".format(best.value))
    print("  Params: ")
    for k, v in best.params.items():
        print("    {}: {}".format(k, v))
    slow = max(done, key=lambda t: t.user_attrs["fit_seconds"])
    total = sum((t.duration.total_seconds() for t in study.trials), 0.0)
    print(f"  Longest trial took {slow.duration}, mean {total / len(study.trials):.3f} s, total {total:.1f} s")
    with open(folder / "report.html", "w") as f:
        f.write(f"<html><body><h1>{study.study_name}</h1><p>Generated {datetime.now():%Y-%m-%d %H:%M:%S}</p><table>\n")
        f.write("<tr><th>#</th><th>state</th><th>value</th><th>start</th><th>duration</th></tr>\n")
        for t in study.trials:
            v = "" if t.value is None else f"{t.value:.6f}"
            f.write(f"<tr><td>{t.number}</td><td>{t.state.name}</td><td>{v}</td>"
                    f"<td>{t.datetime_start:%H:%M:%S}</td><td>{t.duration.total_seconds():.2f}s</td></tr>\n")
        f.write("</table></body></html>\n")


def main():
    optuna.logging.get_logger("optuna").addHandler(logging.FileHandler("optuna.log"))
    folder = Path("results")
    folder.mkdir()
    name = f"no-name-{uuid.uuid4()}"
    study = optuna.create_study(
        study_name=name, storage="sqlite:///study.db", direction="minimize",
        sampler=optuna.samplers.TPESampler(seed=10, n_startup_trials=6),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=5))
    x, y = make_data()
    print(f"{len(y)} samples, {int(y.sum())} positive; lightgbm {lgb.__version__}, optuna {optuna.__version__}")
    t = time.time()
    study.optimize(Objective(x, y), n_trials=N_TRIALS, show_progress_bar=sys.stderr.isatty())
    print(f"optimize: {time.time() - t:.2f}s wall")
    report(study, folder)
    best = dict(study.best_params, objective="binary", verbosity=-1, num_threads=1, seed=1, deterministic=True,
                force_row_wise=True)
    model = lgb.train(best, lgb.Dataset(x, label=y), num_boost_round=20)
    model.save_model(str(folder / "best_model.txt"))
    imp = model.feature_importance("gain")
    for i in np.argsort(-imp, kind="stable")[:5]:
        print(f"  Column_{i}: gain {imp[i]:.4f}")


if __name__ == "__main__":
    main()
