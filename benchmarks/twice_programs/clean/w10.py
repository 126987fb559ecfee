"""Hyper-parameter optimisation with Optuna: gradient boosting on a synthetic demand data set,
sqlite storage, pruning with fold-wise intermediate values, and exported trial tables."""
import json
import logging
import os
import sys
import time
import uuid
from datetime import datetime
from pathlib import Path

import numpy as np
import optuna
import pandas as pd
import psutil
from optuna.pruners import MedianPruner
from optuna.samplers import TPESampler
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import KFold
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVR

SEED = 77
N_TRIALS = 18
N_FOLDS = 3
OUT = Path("hpo")

optuna.logging.get_logger("optuna").addHandler(logging.StreamHandler(sys.stdout))
optuna.logging.disable_default_handler()
logger = logging.getLogger("hpo")


def make_demand(n=420):
    rng = np.random.default_rng(SEED)
    day = np.arange(n)
    temp = 15 + 10 * np.sin(2 * np.pi * day / 365) + rng.normal(0, 2.5, n)
    promo = (rng.random(n) < 0.15).astype(float)
    price = 4 + 0.4 * np.sin(day / 40) + rng.normal(0, 0.1, n)
    weekend = ((day % 7) >= 5).astype(float)
    y = 120 + 2.2 * temp - 18 * (price - 4) + 25 * promo + 14 * weekend + 8 * promo * weekend
    y += 6 * np.sin(2 * np.pi * day / 7) + rng.normal(0, 5, n)
    X = np.column_stack([temp, promo, price, weekend, np.sin(2 * np.pi * day / 365), np.cos(2 * np.pi * day / 7)])
    return X, y


def build_model(trial):
    kind = trial.suggest_categorical("model", ["ridge", "svr", "trees"])
    if kind == "ridge":
        degree = trial.suggest_int("degree", 1, 3)
        return PolynomialFeatures(degree), Ridge(alpha=trial.suggest_float("alpha", 1e-3, 100, log=True))
    if kind == "svr":
        return StandardScaler(), SVR(C=trial.suggest_float("C", 0.5, 300, log=True),
                                     epsilon=trial.suggest_float("epsilon", 0.05, 5, log=True))
    return StandardScaler(), ExtraTreesRegressor(
        n_estimators=trial.suggest_int("n_estimators", 20, 60, step=10),
        max_depth=trial.suggest_int("max_depth", 3, 12),
        min_samples_leaf=trial.suggest_int("min_samples_leaf", 1, 8), random_state=SEED, n_jobs=1)


class Objective:
    def __init__(self, X, y):
        self.X, self.y = X, y
        self.proc = psutil.Process()

    def __call__(self, trial):
        t0, c0 = time.time(), time.process_time()
        prep, model = build_model(trial)
        maes = []
        for k, (tr, va) in enumerate(KFold(N_FOLDS, shuffle=True, random_state=SEED).split(self.X)):
            A, B = prep.fit_transform(self.X[tr]), prep.transform(self.X[va])
            if isinstance(prep, PolynomialFeatures):
                sc = StandardScaler().fit(A)
                A, B = sc.transform(A), sc.transform(B)
            model.fit(A, self.y[tr])
            maes.append(mean_absolute_error(self.y[va], model.predict(B)))
            trial.report(float(np.mean(maes)), k)
            if trial.should_prune():
                trial.set_user_attr("fit_seconds", time.time() - t0)
                raise optuna.TrialPruned()
        trial.set_user_attr("fold_mae", [float(m) for m in maes])
        trial.set_user_attr("fit_seconds", time.time() - t0)
        trial.set_user_attr("cpu_seconds", time.process_time() - c0)
        trial.set_user_attr("rss_mb", round(self.proc.memory_info().rss / 2 ** 20, 1))
        trial.set_user_attr("worker", f"{os.uname().nodename}:{os.getpid()}")
        return float(np.mean(maes))


class ProgressCallback:
    """Print the mean duration and the expected remaining time after each trial."""

    def __init__(self, n_trials):
        self.n, self.t0 = n_trials, time.monotonic()

    def __call__(self, study, trial):
        done = len(study.trials)
        el = time.monotonic() - self.t0
        eta = el / done * (self.n - done)
        if done % 6 == 0 or done == self.n:
            logger.info("%d/%d trials | best %.5f | %.3f s/trial | elapsed %s | eta %s", done, self.n,
                        study.best_value, el / done, time.strftime("%M:%S", time.gmtime(el)),
                        time.strftime("%M:%S", time.gmtime(eta)))


def export(study, run_id):
    df = study.trials_dataframe(attrs=("number", "value", "datetime_start", "datetime_complete", "duration", "params",
                                       "user_attrs", "state"))
    df = df[[c for c in df.columns if c != "user_attrs_fold_mae"]]
    df.to_csv(OUT / "trials.csv", index=False)
    board = df[df.state == "COMPLETE"].sort_values(["value", "number"]).head(5)
    board[["number", "value", "params_model"]].to_csv(OUT / "leaderboard.csv", index=False)
    rows = []
    for t in study.trials:
        rows.append({"number": t.number, "state": t.state.name, "value": t.value, "params": t.params,
                     "intermediate": t.intermediate_values, "started": t.datetime_start.isoformat(),
                     "took": str(t.duration)})
    with open(OUT / f"trials-{run_id}.jsonl", "w") as f:
        for r in rows:
            f.write(json.dumps(r) + "\n")
    imp = optuna.importance.get_param_importances(
        study, params=["model"], evaluator=optuna.importance.FanovaImportanceEvaluator(n_trees=16, seed=0))
    return {"n_complete": int((df.state == "COMPLETE").sum()), "n_pruned": int((df.state == "PRUNED").sum()),
            "importance": {k: float(v) for k, v in imp.items()},
            "total_trial_time": df.duration.sum().total_seconds(),
            "slowest_trial_s": df.duration.max().total_seconds()}


def main():
    OUT.mkdir(exist_ok=True)
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="[%(levelname).1s %(asctime)s] %(message)s")
    run_id = uuid.uuid4().hex[:8]
    logger.info("run %s started in %s", run_id, os.getcwd())
    X, y = make_demand()
    study = optuna.create_study(study_name="demand-hpo", storage=f"sqlite:///{OUT}/study.db", direction="minimize",
                                sampler=TPESampler(seed=SEED, n_startup_trials=6),
                                pruner=MedianPruner(n_startup_trials=5, n_warmup_steps=0), load_if_exists=True)
    study.set_user_attr("run_id", run_id)
    study.set_user_attr("launched", datetime.now().isoformat(sep=" ", timespec="milliseconds"))
    t0 = time.perf_counter()
    study.optimize(Objective(X, y), n_trials=N_TRIALS, n_jobs=1, callbacks=[ProgressCallback(N_TRIALS)])
    wall = time.perf_counter() - t0
    stats = export(study, run_id)
    best = study.best_trial
    with open(OUT / "best.json", "w") as f:
        json.dump({"run_id": run_id, "trial": best.number, "value": best.value, "params": best.params,
                   "fold_mae": best.user_attrs["fold_mae"], **stats, "wall_time": wall}, f, indent=2, sort_keys=True)
    prep, model = build_model(optuna.trial.FixedTrial(best.params))
    A = prep.fit_transform(X)
    if isinstance(prep, PolynomialFeatures):
        A = StandardScaler().fit_transform(A)
    pred = model.fit(A, y).predict(A)
    pd.DataFrame({"y": y, "pred": pred}).to_csv(OUT / "refit_predictions.csv", index_label="day", float_format="%.8f")
    print(f"Number of finished trials: {len(study.trials)} ({stats['n_pruned']} pruned)")
    print("Best trial:")
    print(f"  Value: {best.value}")
    print("  Params: ")
    for k, v in best.params.items():
        print(f"    {k}: {v}")
    print(f"Finished in {wall:.2f} s; the study is in {OUT}/study.db")


if __name__ == "__main__":
    main()
