"""Step 3: fit a readmission model and write metrics."""
import argparse
import csv
import json
from pathlib import Path

import numpy as np

FEATURES = ["age", "male", "n_encounters", "systolic", "glucose", "bmi",
            "hypertension", "diabetes", "asthma", "copd"]


def load(path):
    with open(path) as fh:
        rows = list(csv.DictReader(fh))
    x = np.array([[float(r[f]) for f in FEATURES] for r in rows])
    y = np.array([int(r["readmitted"]) for r in rows])
    test = np.array([r["split"] == "test" for r in rows])
    return x, y, test


def fit(x, y, l2=1.0, iterations=25):
    """Ridge logistic regression by Newton steps."""
    x = np.hstack([np.ones((len(x), 1)), x])
    w = np.zeros(x.shape[1])
    penalty = np.full(len(w), l2)
    penalty[0] = 0
    for _ in range(iterations):
        p = 1 / (1 + np.exp(-x @ w))
        grad = x.T @ (p - y) + penalty * w
        hess = (x.T * (p * (1 - p))) @ x + np.diag(penalty)
        w -= np.linalg.solve(hess, grad)
    return w


def auc(y, s):
    order = np.argsort(s, kind="stable")
    ranks = np.empty(len(s))
    ranks[order] = np.arange(1, len(s) + 1)
    n1 = y.sum()
    return (ranks[y == 1].sum() - n1 * (n1 + 1) / 2) / (n1 * (len(y) - n1))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--cohort", required=True)
    ap.add_argument("--out", required=True)
    args = ap.parse_args()
    x, y, test = load(args.cohort)
    mu, sd = x[~test].mean(0), x[~test].std(0)
    x = (x - mu) / sd
    w = fit(x[~test], y[~test])
    score = 1 / (1 + np.exp(-(w[0] + x[test] @ w[1:])))
    metrics = {"auc": round(float(auc(y[test], score)), 5),
               "brier": round(float(((score - y[test]) ** 2).mean()), 5),
               "coefficients": {f: round(float(c), 5) for f, c in zip(FEATURES, w[1:])}}
    Path(args.out).write_text(json.dumps(metrics, indent=1))
    for f, c in metrics["coefficients"].items():
        print(f"{f:13s} {c:+.5f}")
    print(f"AUC={metrics['auc']:.5f} Brier={metrics['brier']:.5f}")


if __name__ == "__main__":
    main()
