"""Compare classical models on the digits data: grid searches in parallel, report, saved best pipeline."""
import argparse
import os
import sys
import warnings
from datetime import datetime
from time import perf_counter

import joblib
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import classification_report, confusion_matrix
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

warnings.filterwarnings("ignore")
RANDOM_STATE = 0

SEARCH = {
    "logreg": (
        Pipeline([("scale", StandardScaler()), ("pca", PCA(random_state=RANDOM_STATE)),
                  ("clf", LogisticRegression(max_iter=200, random_state=RANDOM_STATE))]),
        {"pca__n_components": [20, 40], "clf__C": [0.05, 0.5]},
    ),
    "svm": (
        Pipeline([("scale", StandardScaler()), ("clf", SVC(random_state=RANDOM_STATE))]),
        {"clf__C": [1.0, 5.0], "clf__gamma": ["scale", 0.01]},
    ),
    "forest": (
        Pipeline([("clf", RandomForestClassifier(random_state=RANDOM_STATE))]),
        {"clf__n_estimators": [30, 60], "clf__max_features": ["sqrt", 0.2]},
    ),
}


class Tee:
    """Duplicate stdout into a log file."""

    def __init__(self, path):
        self.file, self.stdout = open(path, "w"), sys.stdout

    def write(self, data):
        self.file.write(data)
        self.stdout.write(data)

    def flush(self):
        self.file.flush()
        self.stdout.flush()


def banner(text):
    print("\n" + "=" * 70 + f"\n{text}\n" + "=" * 70, flush=True)


def fit_search(name, X, y, n_jobs, outdir):
    pipe, grid = SEARCH[name]
    cv = StratifiedKFold(3, shuffle=True, random_state=RANDOM_STATE)
    search = GridSearchCV(pipe, grid, cv=cv, scoring="accuracy", n_jobs=n_jobs, verbose=3, return_train_score=True)
    t0 = perf_counter()
    search.fit(X, y)
    elapsed = perf_counter() - t0
    res = pd.DataFrame(search.cv_results_).drop(columns="params")
    res.to_csv(os.path.join(outdir, f"cv_results_{name}.csv"), index=False)
    print(f"{name}: best CV accuracy {search.best_score_:.6f} with {search.best_params_}")
    print(f"{name}: search {elapsed:.2f} s, refit {search.refit_time_:.3f} s", flush=True)
    return search, elapsed


def bootstrap_ci(correct, n=1000):
    rng = np.random.RandomState(RANDOM_STATE)
    scores = [correct[rng.randint(0, len(correct), len(correct))].mean() for _ in range(n)]
    return np.percentile(scores, [2.5, 97.5])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--outdir", default="report")
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--models", nargs="+", default=list(SEARCH))
    args = parser.parse_args()
    os.makedirs(args.outdir, exist_ok=True)
    sys.stdout = Tee(os.path.join(args.outdir, "run.log"))
    print(f"Run started {datetime.now():%c} on {os.uname().nodename} (pid {os.getpid()})")

    X, y = load_digits(return_X_y=True)
    X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=0.25, stratify=y, random_state=RANDOM_STATE)
    print(f"train {X_tr.shape}, test {X_te.shape}")
    rows, fitted = [], {}
    for name in args.models:
        banner(f"Model: {name}")
        search, elapsed = fit_search(name, X_tr, y_tr, args.n_jobs, args.outdir)
        t0 = perf_counter()
        pred = search.predict(X_te)
        predict_ms = 1000 * (perf_counter() - t0) / len(X_te)
        correct = pred == y_te
        lo, hi = bootstrap_ci(correct)
        rows.append({"model": name, "cv_acc": search.best_score_, "test_acc": correct.mean(), "ci_low": lo,
                     "ci_high": hi, "search_s": elapsed, "predict_ms_per_row": predict_ms})
        fitted[name] = search.best_estimator_
        np.savetxt(os.path.join(args.outdir, f"pred_{name}.txt"), pred, fmt="%d")

    banner("Summary")
    table = pd.DataFrame(rows).sort_values("test_acc", ascending=False)
    print(table.to_string(index=False, float_format=lambda v: f"{v:.4f}"))
    table.to_csv(os.path.join(args.outdir, "leaderboard.csv"), index=False)
    best = table.iloc[0]["model"]
    est = fitted[best]
    pred = est.predict(X_te)
    print(f"\nBest model: {best}")
    print(classification_report(y_te, pred, digits=4))
    pd.DataFrame(confusion_matrix(y_te, pred)).to_csv(os.path.join(args.outdir, "confusion.csv"))
    imp = permutation_importance(est, X_te[:150], y_te[:150], n_repeats=2, random_state=RANDOM_STATE)
    top = np.argsort(-imp.importances_mean, kind="stable")[:10]
    print("Top pixels:", ", ".join(f"({p // 8},{p % 8}) {imp.importances_mean[p]:.4f}" for p in top))
    joblib.dump(est, os.path.join(args.outdir, f"best_{best}.joblib"))
    print(f"Run finished {datetime.now():%c}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
