"""Model selection with scikit-learn's GridSearchCV (verbose), tracked in a file store laid out like MLflow's mlruns.

Output follows scikit-learn (https://github.com/scikit-learn/scikit-learn/pull/16935: "[CV 1/3] END ... score=0.95 total time=   0.1s", mean_fit_time in cv_results_) and MLflow
(https://github.com/mlflow/mlflow/issues/3030: mlruns/<exp>/<run>/meta.yaml with start_time and end_time, metrics files with
"timestamp value step"; https://github.com/mlflow/mlflow/issues/7455).
"""
import getpass
import json
import os
import pickle
import platform
import shutil
import tempfile
import time
import uuid
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import classification_report, roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler


def ms():
    return int(time.time() * 1000)


class Run:
    """One run of the file store."""

    def __init__(self, experiment, name):
        self.id = uuid.uuid4().hex
        self.name, self.exp, self.start = name, experiment, ms()
        self.path = Path("mlruns") / experiment / self.id
        for d in ("artifacts", "metrics", "params", "tags"):
            (self.path / d).mkdir(parents=True)
        try:
            user = getpass.getuser()
        except Exception:
            user = "root"
        for k, v in {"mlflow.user": user, "mlflow.source.name": __file__, "mlflow.source.type": "LOCAL", "mlflow.runName": name}.items():
            (self.path / "tags" / k).write_text(v)

    def __enter__(self):
        return self

    def param(self, k, v):
        (self.path / "params" / k).write_text(str(v))

    def metric(self, k, v, step=0):
        with open(self.path / "metrics" / k, "a") as f:
            f.write(f"{ms()} {v} {step}\n")

    def artifact(self, src):
        shutil.copyfile(src, self.path / "artifacts" / Path(src).name)

    def __exit__(self, *a):
        (self.path / "meta.yaml").write_text(
            f"artifact_uri: file://{(self.path / 'artifacts').resolve()}\nend_time: {ms()}\nentry_point_name: ''\n"
            f"experiment_id: '{self.exp}'\nlifecycle_stage: active\nrun_id: {self.id}\nrun_name: {self.name}\nrun_uuid: {self.id}\n"
            f"source_name: ''\nsource_type: 4\nstart_time: {self.start}\nstatus: 3\ntags: []\nuser_id: root\n")
        print(f"2 file(s) logged, run {self.name} ({self.id}) took {(ms() - self.start) / 1000:.2f}s")


class Timed(LogisticRegression):
    """LogisticRegression that remembers how long its fit took."""

    def fit(self, x, y, sample_weight=None):
        t = time.perf_counter()
        super().fit(x, y, sample_weight)
        self.fit_seconds_ = time.perf_counter() - t
        return self


SEARCHES = {
    "logreg": (Pipeline([("scale", StandardScaler()), ("clf", Timed(max_iter=300))]),
               {"clf__C": [0.01, 0.1, 1.0, 10.0], "clf__class_weight": [None, "balanced"]}),
    "forest": (RandomForestClassifier(random_state=0, n_jobs=1),
               {"n_estimators": [50, 100], "max_depth": [4, None]}),
}


def search(name, est, grid, xtr, ytr, xte, yte):
    with Run("1", name) as run:
        gs = GridSearchCV(est, grid, scoring="roc_auc", cv=StratifiedKFold(3, shuffle=True, random_state=1), verbose=3, n_jobs=1)
        t = time.time()
        gs.fit(xtr, ytr)
        el = time.time() - t
        for k, v in gs.best_params_.items():
            run.param(k, v)
        for i, s in enumerate(gs.cv_results_["mean_test_score"]):
            run.metric("cv_auc", float(s), i)
        prob = gs.predict_proba(xte)[:, 1]
        run.metric("test_auc", float(roc_auc_score(yte, prob)))
        run.metric("search_seconds", el)
        run.metric("refit_seconds", gs.refit_time_)
        tmp = tempfile.mkdtemp()
        pd.DataFrame(gs.cv_results_).to_csv(os.path.join(tmp, "cv_results.csv"), index=False)
        with open(os.path.join(tmp, "model.pkl"), "wb") as f:
            pickle.dump({"model": gs.best_estimator_, "saved_at": time.time(), "sklearn_on": platform.node()}, f)
        for f in ("cv_results.csv", "model.pkl"):
            run.artifact(os.path.join(tmp, f))
        print(f"artifacts collected in {tmp}")
        shutil.rmtree(tmp)
    print(f"best {gs.best_params_}: cv {gs.best_score_:.6f}, test {roc_auc_score(yte, prob):.6f}, "
          f"{len(gs.cv_results_['params'])} candidates in {el:.2f}s, refit {gs.refit_time_:.3f}s")
    print(classification_report(yte, (prob > 0.5).astype(int), digits=4))
    return prob


def main():
    Path("mlruns/1").mkdir(parents=True)
    Path("mlruns/1/meta.yaml").write_text(f"artifact_location: file://{Path('mlruns/1').resolve()}\ncreation_time: {ms()}\n"
                                          "experiment_id: '1'\nlifecycle_stage: active\nname: churn\n")
    x, y = make_classification(1200, 20, n_informative=6, n_redundant=4, flip_y=0.05, random_state=5)
    xtr, xte, ytr, yte = train_test_split(x, y, test_size=0.25, stratify=y, random_state=2)
    mem = joblib.Memory("cache", verbose=1)

    @mem.cache
    def preprocess(a):
        return np.round(np.hstack([a, a[:, :3] ** 2]), 8)

    xtr, xte = preprocess(xtr), preprocess(xte)
    probs = {n: search(n, e, g, xtr, ytr, xte, yte) for n, (e, g) in SEARCHES.items()}
    pd.DataFrame(probs).to_parquet("probabilities.parquet")
    with open("summary.json", "w") as f:
        json.dump({"auc": {n: float(roc_auc_score(yte, p)) for n, p in probs.items()},
                   "blend": float(roc_auc_score(yte, sum(probs.values()))), "created": time.strftime("%Y-%m-%dT%H:%M:%S%z")}, f)


if __name__ == "__main__":
    main()
