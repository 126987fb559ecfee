"""Hyper-parameter search with Optuna (seeded TPE + median pruner), results in SQLite, CSV and JSON."""
import argparse
import json
import logging
import sys
import time
from pathlib import Path

import numpy as np
import optuna
from optuna.pruners import MedianPruner
from optuna.samplers import TPESampler
from sklearn.datasets import make_classification
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

SEED = 2023


def get_data():
    X, y = make_classification(n_samples=1600, n_features=30, n_informative=10, n_redundant=5, n_classes=3,
                               class_sep=0.9, flip_y=0.05, random_state=SEED)
    X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=0.2, random_state=SEED, stratify=y)
    X_tr, X_va, y_tr, y_va = train_test_split(X_tr, y_tr, test_size=0.25, random_state=SEED, stratify=y_tr)
    scaler = StandardScaler().fit(X_tr)
    return tuple(scaler.transform(a) for a in (X_tr, X_va, X_te)) + (y_tr, y_va, y_te)


class RandomFeatures:
    """Random Fourier features, so that a linear model has something to tune."""

    def __init__(self, n_components, gamma, seed):
        self.n_components, self.gamma, self.seed = n_components, gamma, seed

    def fit(self, X):
        rng = np.random.default_rng(self.seed)
        self.W = rng.normal(0, np.sqrt(2 * self.gamma), (X.shape[1], self.n_components))
        self.b = rng.uniform(0, 2 * np.pi, self.n_components)
        return self

    def transform(self, X):
        return np.sqrt(2.0 / self.n_components) * np.cos(X @ self.W + self.b)


def suggest(trial):
    return {
        "n_components": trial.suggest_int("n_components", 24, 128, log=True),
        "gamma": trial.suggest_float("gamma", 1e-3, 0.3, log=True),
        "alpha": trial.suggest_float("alpha", 1e-6, 1e-2, log=True),
        "penalty": trial.suggest_categorical("penalty", ["l2", "elasticnet"]),
        "average": trial.suggest_categorical("average", [True, False]),
    }


def build(params):
    feats = RandomFeatures(params["n_components"], params["gamma"], SEED)
    clf = SGDClassifier(loss="log_loss", alpha=params["alpha"], penalty=params["penalty"], average=params["average"],
                        random_state=SEED)
    return feats, clf


class Objective:
    def __init__(self, data, n_epochs=8):
        self.X_tr, self.X_va, _, self.y_tr, self.y_va, _ = data
        self.n_epochs = n_epochs

    def __call__(self, trial):
        feats, clf = build(suggest(trial))
        Z_tr, Z_va = feats.fit(self.X_tr).transform(self.X_tr), feats.transform(self.X_va)
        order = np.random.default_rng(SEED)
        for epoch in range(self.n_epochs):
            idx = order.permutation(len(Z_tr))
            clf.partial_fit(Z_tr[idx], self.y_tr[idx], classes=np.unique(self.y_tr))
            loss = log_loss(self.y_va, clf.predict_proba(Z_va))
            trial.report(loss, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned()
        trial.set_user_attr("val_accuracy", float(accuracy_score(self.y_va, clf.predict(Z_va))))
        return loss


def refit(params, data):
    X_tr, X_va, X_te, y_tr, y_va, y_te = data
    X, y = np.vstack([X_tr, X_va]), np.concatenate([y_tr, y_va])
    feats, clf = build(params)
    Z = feats.fit(X).transform(X)
    order = np.random.default_rng(SEED)
    for _ in range(12):
        idx = order.permutation(len(Z))
        clf.partial_fit(Z[idx], y[idx], classes=np.unique(y))
    proba = clf.predict_proba(feats.transform(X_te))
    return {"test_logloss": float(log_loss(y_te, proba)),
            "test_accuracy": float(accuracy_score(y_te, proba.argmax(1)))}, clf.coef_


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--n-trials", type=int, default=20)
    parser.add_argument("--study-name", default="rff-sgd")
    parser.add_argument("--out", type=Path, default=Path("tuning"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    optuna.logging.enable_propagation()
    optuna.logging.disable_default_handler()
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="[%(levelname).1s %(asctime)s] %(message)s")

    data = get_data()
    start = time.time()
    study = optuna.create_study(study_name=args.study_name, storage=f"sqlite:///{args.out}/study.db",
                                sampler=TPESampler(seed=SEED, multivariate=False),
                                pruner=MedianPruner(n_startup_trials=5, n_warmup_steps=2), direction="minimize")
    study.optimize(Objective(data), n_trials=args.n_trials)
    elapsed = time.time() - start

    states = [t.state.name for t in study.trials]
    print(f"\nStudy statistics ({elapsed:.1f} s, {elapsed / args.n_trials:.3f} s/trial):")
    print("  Number of finished trials: ", len(states))
    print("  Number of pruned trials: ", states.count("PRUNED"))
    print("  Number of complete trials: ", states.count("COMPLETE"))
    print("Best trial:", study.best_trial.number)
    print("  Value: ", study.best_value)
    for k, v in study.best_params.items():
        print(f"    {k}: {v}")
    test, coef = refit(study.best_params, data)
    print("Test:", test)

    study.trials_dataframe().to_csv(args.out / "trials.csv", index=False)
    np.save(args.out / "coef.npy", coef)
    with open(args.out / "best.json", "w") as f:
        json.dump({"number": study.best_trial.number, "value": study.best_value, "params": study.best_params,
                   "user_attrs": study.best_trial.user_attrs, "test": test,
                   "search_seconds": round(elapsed, 2)}, f, indent=2)


if __name__ == "__main__":
    main()
