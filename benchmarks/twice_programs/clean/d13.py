"""Style of optuna/optuna-examples (sklearn, rdb storage) as in the train scripts with trials_dataframe reports. Differs in
each run: study name, dates of optuna's log lines, datetime_start/complete and duration columns, fit seconds as user attrs."""
import logging
import sys
import time
import warnings
from datetime import datetime

import joblib
import numpy as np
import optuna
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.metrics import roc_auc_score

warnings.filterwarnings("ignore")
optuna.logging.get_logger("optuna").addHandler(logging.StreamHandler(sys.stdout))
STUDY = f"hgb-vs-lr-{datetime.now():%Y%m%d-%H%M%S}"
N_TRIALS = 14
X, y = make_classification(900, 14, n_informative=6, flip_y=0.08, class_sep=0.8, random_state=17)


def objective(trial):
    kind = trial.suggest_categorical("model", ["lr", "hgb"])
    if kind == "lr":
        make = lambda c=trial.suggest_float("C", 1e-3, 1e2, log=True): LogisticRegression(C=c, max_iter=300)
    else:
        kw = dict(learning_rate=trial.suggest_float("learning_rate", 0.02, 0.3, log=True), max_iter=trial.suggest_int("max_iter", 10, 40),
                  max_leaf_nodes=trial.suggest_int("max_leaf_nodes", 4, 16))
        make = lambda: HistGradientBoostingClassifier(random_state=0, **kw)
    scores, secs = [], []
    for k, (tr, va) in enumerate(StratifiedKFold(3, shuffle=True, random_state=5).split(X, y)):
        t0 = time.perf_counter()
        clf = make().fit(X[tr], y[tr])
        secs.append(time.perf_counter() - t0)
        scores.append(roc_auc_score(y[va], clf.predict_proba(X[va])[:, 1]))
        trial.report(float(np.mean(scores)), k)
        if trial.should_prune():
            trial.set_user_attr("fit_seconds", secs)
            raise optuna.TrialPruned()
    trial.set_user_attr("fit_seconds", secs)
    trial.set_user_attr("fold_auc", scores)
    return float(np.mean(scores))


class Progress:
    def __init__(self):
        self.t0 = time.time()

    def __call__(self, study, trial):
        done = len(study.trials)
        el = time.time() - self.t0
        eta = el / done * (N_TRIALS - done)
        dur = trial.duration.total_seconds()
        print(f"  [{done:2d}/{N_TRIALS}] {trial.state.name:<8} took {dur:.3f}s | elapsed {el:6.2f}s | ~{eta:.0f}s left | best {study.best_value:.5f}")


def main():
    study = optuna.create_study(study_name=STUDY, storage="sqlite:///optuna.db", direction="maximize",
                                sampler=optuna.samplers.TPESampler(seed=10, n_startup_trials=6),
                                pruner=optuna.pruners.MedianPruner(n_startup_trials=4))
    wall = time.time()
    study.optimize(objective, n_trials=N_TRIALS, callbacks=[Progress()])
    wall = time.time() - wall
    df = study.trials_dataframe()
    df.to_csv("trials.csv", index=False)
    pruned = [t for t in study.trials if t.state == optuna.trial.TrialState.PRUNED]
    complete = [t for t in study.trials if t.state == optuna.trial.TrialState.COMPLETE]
    print("Study statistics: ")
    print("  Name: ", study.study_name)
    print("  Number of finished trials: ", len(study.trials))
    print("  Number of pruned trials: ", len(pruned))
    print("  Number of complete trials: ", len(complete))
    print("  Time: {:.0f}m {:.2f}s ({:.2f} trials/s)".format(wall // 60, wall % 60, N_TRIALS / wall))
    print("Best trial:", study.best_trial.number)
    print("  Value: ", study.best_value)
    for k, v in study.best_params.items():
        print("    {}: {}".format(k, v))
    show = df[["number", "value", "datetime_start", "duration", "params_model", "state"]].copy()
    show["duration"] = show.duration.dt.total_seconds().round(3)
    print(show.sort_values("value", ascending=False).head(8).to_string(index=False))
    per = df.assign(s=df.duration.dt.total_seconds()).groupby("params_model").s.describe()[["count", "mean", "50%", "max"]]
    print(per.round(4))
    joblib.dump({"study": STUDY, "params": study.best_params, "value": study.best_value, "duration": pd.Timedelta(seconds=wall)}, "best.joblib")


if __name__ == "__main__":
    main()
