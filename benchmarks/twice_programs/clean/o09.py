"""Hyper-parameter search stored in SQLite and in an mlruns folder with an HTML report, in the style of optuna/optuna-examples + mlflow."""
import argparse
import logging
import time
import uuid
from datetime import datetime, timezone
from pathlib import Path

import jinja2
import numpy as np
import optuna
import yaml
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import accuracy_score, confusion_matrix
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

REPORT = jinja2.Template("""<!doctype html>
<html><head><meta charset="utf-8"><title>{{ study.study_name }}</title></head>
<body>
<h1>Study {{ study.study_name }}</h1>
<p>Generated {{ now.strftime('%A %d %B %Y, %H:%M:%S') }}; {{ trials|length }} trials in {{ '%.1f'|format(total) }} s
({{ '%.2f'|format(trials|length / total) }} trials/s).</p>
<p>Best: trial {{ study.best_trial.number }} with accuracy <b>{{ '%.5f'|format(study.best_value) }}</b></p>
<table border="1"><tr><th>#</th><th>state</th><th>value</th><th>model</th><th>started</th><th>duration</th></tr>
{% for t in trials %}<tr><td>{{ t.number }}</td><td>{{ t.state.name }}</td>
<td>{{ '%.5f'|format(t.value) if t.value is not none else '-' }}</td><td>{{ t.params.classifier }}</td>
<td>{{ t.datetime_start.strftime('%H:%M:%S.%f') }}</td><td>{{ t.duration }}</td></tr>
{% endfor %}</table>
<h2>Holdout confusion matrix</h2><pre>{{ cm }}</pre>
</body></html>
""")


class FileStore:
    """Just enough of MLflow's file layout: mlruns/<exp>/<run>/{meta.yaml,params,metrics,tags}."""

    def __init__(self, root, experiment_id="0", name="digits"):
        self.exp = Path(root) / experiment_id
        self.exp.mkdir(parents=True)
        self.experiment_id = experiment_id
        (self.exp / "meta.yaml").write_text(yaml.safe_dump(
            {"experiment_id": experiment_id, "name": name, "artifact_location": self.exp.resolve().as_uri(),
             "creation_time": int(time.time() * 1000), "lifecycle_stage": "active"}))

    def start_run(self, run_name):
        run_id = uuid.uuid4().hex
        d = self.exp / run_id
        for sub in ("params", "metrics", "tags", "artifacts"):
            (d / sub).mkdir(parents=True)
        (d / "tags" / "mlflow.runName").write_text(run_name)
        meta = {"run_id": run_id, "run_name": run_name, "experiment_id": self.experiment_id, "status": 1,
                "start_time": int(time.time() * 1000), "end_time": None, "user_id": "ci"}
        return d, meta

    @staticmethod
    def log_params(d, params):
        for k, v in params.items():
            (d / "params" / k).write_text(str(v))

    @staticmethod
    def log_metric(d, key, value, step=0):
        with open(d / "metrics" / key, "a") as f:
            f.write(f"{int(time.time() * 1000)} {value} {step}\n")

    @staticmethod
    def end_run(d, meta, status=3):
        meta.update(end_time=int(time.time() * 1000), status=status)
        (d / "meta.yaml").write_text(yaml.safe_dump(meta))


def build(params, seed):
    if params["classifier"] == "sgd":
        clf = SGDClassifier(loss="log_loss", alpha=params["alpha"], learning_rate="adaptive", eta0=params["eta0"],
                            random_state=seed)
    else:
        clf = ExtraTreesClassifier(n_estimators=params["n_estimators"], max_depth=params["max_depth"],
                                   max_features=params["max_features"], random_state=seed, n_jobs=1)
    return clf


class Objective:
    def __init__(self, X, y, store, seed):
        self.Xtr, self.Xva, self.ytr, self.yva = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
        sc = StandardScaler().fit(self.Xtr)
        self.Ztr, self.Zva = sc.transform(self.Xtr), sc.transform(self.Xva)
        self.store, self.seed = store, seed

    def __call__(self, trial):
        d, meta = self.store.start_run(f"trial-{trial.number:03d}")
        trial.set_user_attr("mlflow_run_id", meta["run_id"])
        name = trial.suggest_categorical("classifier", ["sgd", "trees"])
        t0 = time.perf_counter()
        if name == "sgd":
            params = {"classifier": name, "alpha": trial.suggest_float("alpha", 1e-6, 1e-1, log=True),
                      "eta0": trial.suggest_float("eta0", 1e-4, 1e-1, log=True)}
            clf = build(params, self.seed)
            for step in range(6):
                clf.partial_fit(self.Ztr, self.ytr, classes=np.arange(10))
                acc = clf.score(self.Zva, self.yva)
                self.store.log_metric(d, "val_accuracy", acc, step)
                trial.report(acc, step)
                if trial.should_prune():
                    self.store.log_params(d, params)
                    self.store.end_run(d, meta, status=4)
                    raise optuna.TrialPruned()
        else:
            params = {"classifier": name, "n_estimators": trial.suggest_int("n_estimators", 10, 40, step=10),
                      "max_depth": trial.suggest_int("max_depth", 3, 14),
                      "max_features": trial.suggest_float("max_features", 0.05, 0.5)}
            acc = build(params, self.seed).fit(self.Xtr, self.ytr).score(self.Xva, self.yva)
            self.store.log_metric(d, "val_accuracy", acc)
        fit_time = time.perf_counter() - t0
        self.store.log_metric(d, "fit_time", fit_time)
        self.store.log_params(d, params)
        self.store.end_run(d, meta)
        trial.set_user_attr("fit_time", fit_time)
        return acc


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--n-trials", type=int, default=16)
    ap.add_argument("--seed", type=int, default=3)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    optuna.logging.enable_propagation()
    optuna.logging.disable_default_handler()

    X, y = load_digits(return_X_y=True)
    X, X_hold, y, y_hold = train_test_split(X, y, test_size=0.25, random_state=args.seed, stratify=y)
    store = FileStore("mlruns")
    study = optuna.create_study(
        study_name="digits-accuracy", storage="sqlite:///optuna.db", direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=args.seed, n_startup_trials=6),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=3, n_warmup_steps=2))
    t0 = time.time()
    study.optimize(Objective(X, y, store, args.seed), n_trials=args.n_trials)
    total = time.time() - t0

    trials = study.get_trials(deepcopy=False)
    n_pruned = sum(t.state == optuna.trial.TrialState.PRUNED for t in trials)
    print(f"Number of finished trials: {len(trials)} (pruned {n_pruned})")
    print(f"Best trial: {study.best_trial.number}\n  Value: {study.best_value}\n  Params:")
    for k, v in study.best_params.items():
        print(f"    {k}: {v}")

    final = make_pipeline(StandardScaler(), build(study.best_params, args.seed)).fit(X, y)
    pred = final.predict(X_hold)
    cm = confusion_matrix(y_hold, pred)
    print(f"Holdout accuracy: {accuracy_score(y_hold, pred):.5f}")
    df = study.trials_dataframe(attrs=("number", "value", "datetime_start", "datetime_complete", "duration", "params",
                                       "user_attrs", "state"))
    df.to_csv("trials.csv", index=False)
    Path("report.html").write_text(REPORT.render(study=study, trials=trials, total=total, cm=cm,
                                                 now=datetime.now(timezone.utc)))
    print(f"Optimisation took {total:.2f} s")


if __name__ == "__main__":
    main()
