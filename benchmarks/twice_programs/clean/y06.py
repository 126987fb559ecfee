"""Hyperparameter search for LightGBM with Optuna, kept in an SQLite study.

Modelled on: optuna/optuna-examples (lightgbm/lightgbm_simple.py and the RDB storage
tutorial): trial log lines, study database, trials_dataframe with datetimes and durations.
"""
import json
import logging
import os
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

import lightgbm as lgb
import numpy as np
import optuna
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold

SEED = 2024
N_TRIALS = 8
ROUNDS = 25
STORAGE = "sqlite:///study.db"


def setup_logging():
    optuna.logging.get_logger("optuna").addHandler(logging.FileHandler("optuna.log"))
    fmt = logging.Formatter("[%(levelname).1s %(asctime)s] %(message)s")
    for h in optuna.logging.get_logger("optuna").handlers:
        h.setFormatter(fmt)
    log = logging.getLogger("search")
    log.setLevel(logging.INFO)
    h = logging.StreamHandler(sys.stdout)
    h.setFormatter(logging.Formatter("%(asctime)s [%(process)d] %(levelname)s %(message)s"))
    log.addHandler(h)
    return log


class Objective:
    def __init__(self, x, y, log):
        self.x, self.y, self.log = x, y, log
        self.folds = list(StratifiedKFold(3, shuffle=True, random_state=SEED).split(x, y))

    def params(self, trial):
        return {
            "objective": "binary", "metric": "binary_logloss", "verbosity": -1, "seed": SEED, "num_threads": 1,
            "deterministic": True, "force_row_wise": True,
            "learning_rate": trial.suggest_float("learning_rate", 0.02, 0.3, log=True),
            "num_leaves": trial.suggest_int("num_leaves", 4, 32),
            "lambda_l2": trial.suggest_float("lambda_l2", 1e-6, 10.0, log=True),
            "feature_fraction": trial.suggest_float("feature_fraction", 0.4, 1.0),
            "bagging_fraction": trial.suggest_float("bagging_fraction", 0.5, 1.0),
            "bagging_freq": trial.suggest_int("bagging_freq", 1, 5),
            "min_child_samples": trial.suggest_int("min_child_samples", 5, 50),
        }

    def __call__(self, trial):
        params = self.params(trial)
        scores, t0 = [], time.perf_counter()
        for k, (tr, va) in enumerate(self.folds):
            model = lgb.train(params, lgb.Dataset(self.x[tr], self.y[tr]), ROUNDS)
            scores.append(log_loss(self.y[va], model.predict(self.x[va])))
            trial.report(float(np.mean(scores)), k)
            if trial.should_prune():
                raise optuna.TrialPruned()
        trial.set_user_attr("fold_scores", [float(s) for s in scores])
        trial.set_user_attr("fit_seconds", time.perf_counter() - t0)
        trial.set_user_attr("pid", os.getpid())
        return float(np.mean(scores))


def progress(log, t0):
    def callback(study, trial):
        done = len(study.get_trials(deepcopy=False))
        el = time.time() - t0
        log.info("%2d/%d trials, %.2f s elapsed, %.2f trials/s, eta %.1f s, best %.6f", done, N_TRIALS, el, done / el,
                 el / done * (N_TRIALS - done), study.best_value)
    return callback


def final_fit(study, obj, x, y):
    params = {**obj.params(optuna.trial.FixedTrial(study.best_params))}
    oof = np.zeros(len(y))
    gain = np.zeros(x.shape[1])
    for tr, va in obj.folds:
        m = lgb.train(params, lgb.Dataset(x[tr], y[tr]), ROUNDS)
        oof[va] = m.predict(x[va])
        gain += m.feature_importance("gain") / len(obj.folds)
    full = lgb.train(params, lgb.Dataset(x, y), ROUNDS)
    full.save_model("model.txt")
    return oof, gain


def main():
    log = setup_logging()
    data = load_breast_cancer()
    x, y = data.data, data.target
    log.info("data %s, positive share %.4f", x.shape, y.mean())
    study = optuna.create_study(
        study_name="lgbm-breast-cancer", storage=STORAGE, direction="minimize",
        sampler=optuna.samplers.TPESampler(seed=SEED, n_startup_trials=4),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=3, n_warmup_steps=0),
    )
    study.set_user_attr("started", datetime.now(timezone.utc).isoformat())
    obj = Objective(x, y, log)
    t0 = time.time()
    study.optimize(obj, n_trials=N_TRIALS, callbacks=[progress(log, t0)])
    took = time.time() - t0
    study.set_user_attr("wall_seconds", took)

    states = [t.state.name for t in study.trials]
    print(f"Number of finished trials: {len(study.trials)}")
    print(f"  complete: {states.count('COMPLETE')}, pruned: {states.count('PRUNED')}")
    best = study.best_trial
    print(f"Best trial: {best.number}\n  Value: {best.value}\n  Params:")
    for k, v in best.params.items():
        print(f"    {k}: {v}")
    study.trials_dataframe().to_csv("trials.csv", index=False)
    importance = optuna.importance.get_param_importances(study, evaluator=optuna.importance.FanovaImportanceEvaluator(n_trees=16, seed=SEED))

    oof, gain = final_fit(study, obj, x, y)
    np.savez("oof.npz", oof=oof, y=y)
    order = np.argsort(-gain)[:8]
    Path("feature_importance.csv").write_text(
        "feature,gain\n" + "".join(f"{data.feature_names[i]},{gain[i]:.6f}\n" for i in order))
    result = {
        "study": study.study_name, "n_trials": len(study.trials), "best_value": best.value, "best_params": best.params,
        "importances": importance, "oof_auc": roc_auc_score(y, oof), "oof_accuracy": accuracy_score(y, oof > 0.5),
        "best_trial_started": best.datetime_start.isoformat(), "best_trial_duration": str(best.duration),
        "search_seconds": round(took, 3), "mean_trial_seconds": took / len(study.trials),
    }
    Path("best.json").write_text(json.dumps(result, indent=2))
    print(f"OOF AUC {result['oof_auc']:.6f}, accuracy {result['oof_accuracy']:.6f}")
    log.info("search took %.2f s", took)


if __name__ == "__main__":
    main()
