"""Modelled on https://github.com/marcotcr/lime/issues/119

House price model with local explanations: the features that are selected for
a house and their effects vary over runs.
"""
import argparse
import csv
import json
import logging
from collections import Counter

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.model_selection import train_test_split

from j07_explain import TabularExplainer

log = logging.getLogger("houses")

FEATURES = ["area", "rooms", "age", "distance", "crime", "school", "tax", "floor", "energy",
            "noise", "garden", "river"]


def make_houses(n, seed):
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(
        {
            "area": rng.lognormal(4.5, 0.35, n),
            "rooms": rng.integers(1, 8, n).astype(float),
            "age": rng.gamma(2.0, 18.0, n),
            "distance": rng.exponential(6.0, n),
            "crime": rng.beta(2, 9, n) * 10,
            "school": rng.normal(6.5, 1.2, n),
            "tax": rng.uniform(180, 720, n),
            "floor": rng.integers(0, 12, n).astype(float),
            "energy": rng.normal(110, 32, n),
            "noise": rng.normal(55, 8, n),
            "garden": rng.exponential(60, n),
            "river": rng.uniform(0, 5, n),
        }
    )
    price = (
        1.9 * df["area"]
        + 9 * df["rooms"]
        - 0.35 * df["age"]
        - 30 * np.log1p(df["distance"])
        - 6 * df["crime"]
        + 14 * df["school"]
        - 0.03 * df["tax"]
        + 0.09 * df["garden"]
        + 18 * (df["river"] < 0.6)
        + rng.normal(0, 14, n)
    )
    df["price"] = price.round(2)
    return df


def train(df, seed):
    X = df[FEATURES].to_numpy()
    y = df["price"].to_numpy()
    Xtr, Xte, ytr, yte = train_test_split(X, y, test_size=0.2, random_state=seed)
    model = RandomForestRegressor(n_estimators=40, max_features=0.6, min_samples_leaf=3,
                                  random_state=seed, n_jobs=1)
    model.fit(Xtr, ytr)
    pred = model.predict(Xte)
    log.info("test mae %.3f r2 %.4f", mean_absolute_error(yte, pred), r2_score(yte, pred))
    return model, Xtr, Xte, yte


def pick_cases(model, X, y, n):
    """The houses whose prices the model misses by most."""
    err = np.abs(model.predict(X) - y)
    return np.argsort(-err, kind="stable")[:n]


def explain_all(model, explainer, X, cases, num_features, num_samples):
    out = []
    for c in cases:
        exp = explainer.explain_instance(X[c], model.predict, num_features=num_features,
                                         num_samples=num_samples)
        out.append((int(c), exp))
    return out


def write_explanations(results, path):
    with open(path, "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["case", "rank", "condition", "weight"])
        for case, exp in results:
            for rank, (name, weight) in enumerate(exp.as_list(), 1):
                w.writerow([case, rank, name, f"{weight:.6f}"])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--rows", type=int, default=900)
    ap.add_argument("--cases", type=int, default=8)
    ap.add_argument("--num-features", type=int, default=5)
    ap.add_argument("--num-samples", type=int, default=800)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")

    houses = make_houses(args.rows, args.seed)
    model, Xtr, Xte, yte = train(houses, args.seed)
    importance = sorted(zip(FEATURES, model.feature_importances_), key=lambda t: -t[1])
    print("forest importance:", ", ".join(f"{n} {v:.3f}" for n, v in importance[:6]))

    explainer = TabularExplainer(Xtr, FEATURES)  # cause
    cases = pick_cases(model, Xte, yte, args.cases)
    results = explain_all(model, explainer, Xte, cases, args.num_features, args.num_samples)

    counts = Counter()
    for case, exp in results:
        log.info("case %d: local prediction %.3f, fit %.4f", case, exp.local_pred, exp.score)
        print(f"case {case:4d}  " + "; ".join(f"{n} ({w:+.3f})" for n, w in exp.as_list()[:3]))
        for name, _ in exp.as_list():
            counts[next(f for f in FEATURES if f in name)] += 1
    write_explanations(results, "explanations.csv")
    with open("report.json", "w") as fh:
        json.dump(
            {
                "feature_counts": dict(sorted(counts.items())),
                "mean_fit": round(float(np.mean([e.score for _, e in results])), 6),
                "local_predictions": {str(c): round(e.local_pred, 4) for c, e in results},
            },
            fh,
            indent=2,
        )
    print("selected features:", dict(counts.most_common()))


if __name__ == "__main__":
    main()
