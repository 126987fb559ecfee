"""Model selection for a risk score, with studies evaluated in parallel.

Modelled on https://github.com/vanderschaarlab/autoprognosis/issues/15
Evaluates several classifier plugins by bootstrap and builds a weighted ensemble.
"""
import argparse
import json
import logging
import random
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

log = logging.getLogger("study")


@dataclass
class StudyConfig:
    seed: int = 0
    n_jobs: int = 2
    boots: int = 6
    columns: int = 10
    top_k: int = 2
    workspace: str = "workspace"


def enable_reproducible_results(seed):
    random.seed(seed)
    np.random.seed(seed)


def load_data(cfg):
    raw = load_breast_cancer(as_frame=True)
    X = raw.data.iloc[:, : cfg.columns].copy()
    rng = np.random.default_rng(cfg.seed)
    X += rng.normal(scale=X.std().to_numpy() * 1.5, size=X.shape)
    X.columns = [c.replace(" ", "_") for c in X.columns]
    return train_test_split(X, raw.target, test_size=0.3, random_state=cfg.seed, stratify=raw.target)


def build_plugin(name, params, seed):
    if name == "logistic":
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=300, **params))
    if name == "forest":
        return RandomForestClassifier(random_state=seed, n_estimators=25, **params)
    if name == "bayes":
        return make_pipeline(StandardScaler(), GaussianNB(**params))
    raise KeyError(name)


SEARCH_SPACE = [
    ("logistic", {"C": 0.01}),
    ("logistic", {"C": 1.0}),
    ("forest", {"max_depth": 3}),
    ("forest", {"max_depth": 8}),
    ("bayes", {"var_smoothing": 1e-9}),
    ("bayes", {"var_smoothing": 0.5}),
]


def bootstrap_indices(n):
    inside = np.random.choice(n, size=n, replace=True)  # cause
    outside = np.setdiff1d(np.arange(n), inside)
    return inside, outside


def evaluate_candidate(name, params, X, y, boots, seed):
    aucs, briers = [], []
    for _ in range(boots):
        inside, outside = bootstrap_indices(len(y))
        model = build_plugin(name, params, seed)
        model.fit(X[inside], y[inside])
        p = model.predict_proba(X[outside])[:, 1]
        aucs.append(roc_auc_score(y[outside], p))
        briers.append(brier_score_loss(y[outside], p))
    return {
        "name": name,
        "params": params,
        "auc": float(np.mean(aucs)),
        "auc_std": float(np.std(aucs)),
        "brier": float(np.mean(briers)),
    }


class ClassifierStudy:
    def __init__(self, cfg):
        self.cfg = cfg
        self.results = []

    def run(self, X, y):
        started = time.time()
        Xa, ya = X.to_numpy(), y.to_numpy()
        dispatch = Parallel(n_jobs=self.cfg.n_jobs)
        self.results = dispatch(  # cause
            delayed(evaluate_candidate)(name, params, Xa, ya, self.cfg.boots, self.cfg.seed)
            for name, params in SEARCH_SPACE
        )
        log.info("evaluated %d candidates in %.1fs", len(self.results), time.time() - started)
        return self

    def leaderboard(self):
        return sorted(self.results, key=lambda r: -(r["auc"] - r["brier"]))

    def best(self):
        return self.leaderboard()[: self.cfg.top_k]


class WeightedEnsemble:
    def __init__(self, members, seed):
        self.members = members
        scores = np.array([m["auc"] - 0.5 for m in members])
        self.weights = scores / scores.sum()
        self.models = [build_plugin(m["name"], m["params"], seed) for m in members]

    def fit(self, X, y):
        for model in self.models:
            model.fit(X.to_numpy(), y.to_numpy())
        return self

    def predict(self, X):
        stacked = [m.predict_proba(X.to_numpy())[:, 1] for m in self.models]
        return np.average(stacked, axis=0, weights=self.weights)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=StudyConfig.seed)
    parser.add_argument("--n-jobs", type=int, default=StudyConfig.n_jobs)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    cfg = StudyConfig(seed=args.seed, n_jobs=args.n_jobs)
    enable_reproducible_results(cfg.seed)

    X_train, X_test, y_train, y_test = load_data(cfg)
    study = ClassifierStudy(cfg).run(X_train, y_train)
    ensemble = WeightedEnsemble(study.best(), cfg.seed).fit(X_train, y_train)
    p = ensemble.predict(X_test)
    report = {
        "members": [[m["name"], m["params"]] for m in ensemble.members],
        "weights": ensemble.weights.round(6).tolist(),
        "test_auc": round(float(roc_auc_score(y_test, p)), 6),
        "test_brier": round(float(brier_score_loss(y_test, p)), 6),
    }
    workspace = Path(cfg.workspace)
    workspace.mkdir(exist_ok=True)
    board = pd.DataFrame(study.leaderboard())
    board.to_csv(workspace / "leaderboard.csv", index=False, float_format="%.6f")
    (workspace / "report.json").write_text(json.dumps(report, indent=2))
    pd.DataFrame({"p": p.round(6)}, index=X_test.index).to_csv(workspace / "scores.csv")

    print("leaderboard")
    for row in study.leaderboard():
        print(f"  {row['name']:<9s} {str(row['params']):<24s} auc {row['auc']:.5f} brier {row['brier']:.5f}")
    print(f"ensemble weights {report['weights']}")
    print(f"test auc {report['test_auc']:.5f}  brier {report['test_brier']:.5f}")


if __name__ == "__main__":
    main()
