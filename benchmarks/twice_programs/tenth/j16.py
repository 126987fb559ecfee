"""Modelled on https://github.com/bsc-wdc/dislib/issues/265

Searches random-forest settings for a synthetic credit-risk table with a parallel grid search and evaluates the winner.
"""
import argparse
import json
import logging
import random
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

CONFIG = {
    "seed": 0,
    "n_rows": 900,
    "test_fraction": 0.25,
    "folds": 3,
    "jobs": 2,
    "grid": {
        "forest__n_estimators": [15, 30],
        "forest__max_depth": [3, 6],
        "forest__max_features": ["sqrt", 0.6],
    },
}

NUMERIC = ["age", "income", "debt_ratio", "n_accounts", "months_employed", "utilisation"]
CATEGORICAL = ["region", "housing", "purpose"]

log = logging.getLogger("credit")


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)


def make_table(n, seed):
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(
        {
            "age": rng.integers(19, 78, n),
            "income": np.exp(rng.normal(10.2, 0.5, n)).round(0),
            "debt_ratio": rng.beta(2, 5, n).round(4),
            "n_accounts": rng.poisson(4, n),
            "months_employed": rng.gamma(2.0, 30.0, n).round(0),
            "utilisation": rng.beta(2, 2, n).round(4),
            "region": rng.choice(["north", "south", "east", "west"], n),
            "housing": rng.choice(["rent", "own", "mortgage"], n, p=[0.4, 0.25, 0.35]),
            "purpose": rng.choice(["car", "home", "debt", "other"], n),
        }
    )
    z = (
        2.2 * df["debt_ratio"]
        + 1.4 * df["utilisation"]
        - 0.012 * df["months_employed"]
        - 0.9 * (np.log(df["income"]) - 10.2)
        + 0.4 * (df["housing"] == "rent")
        + 0.3 * (df["purpose"] == "debt") * df["utilisation"]
        - 1.4
    )
    df["default"] = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    holes = rng.random((n, 2)) < 0.06
    df.loc[holes[:, 0], "income"] = np.nan
    df.loc[holes[:, 1], "months_employed"] = np.nan
    return df


def split_table(df, fraction):
    n_test = int(len(df) * fraction)
    return df.iloc[:-n_test].reset_index(drop=True), df.iloc[-n_test:].reset_index(drop=True)


def build_pipeline():
    numeric = Pipeline([("impute", SimpleImputer(strategy="median")), ("scale", StandardScaler())])
    categorical = OneHotEncoder(handle_unknown="ignore")
    prep = ColumnTransformer([("num", numeric, NUMERIC), ("cat", categorical, CATEGORICAL)])
    return Pipeline([("prep", prep), ("forest", RandomForestClassifier(min_samples_leaf=3))])  # cause


def run_search(train, cfg):
    cv = StratifiedKFold(n_splits=cfg["folds"], shuffle=True, random_state=cfg["seed"])
    search = GridSearchCV(
        build_pipeline(),
        cfg["grid"],
        scoring="roc_auc",
        cv=cv,
        n_jobs=cfg["jobs"],
        refit=True,
    )
    search.fit(train[NUMERIC + CATEGORICAL], train["default"])  # cause
    return search


def results_table(search):
    res = pd.DataFrame(search.cv_results_)
    keep = [c for c in res.columns if c.startswith("param_")] + ["mean_test_score", "std_test_score", "rank_test_score"]
    out = res[keep].copy()
    out.columns = [c.replace("param_forest__", "") for c in out.columns]
    return out.sort_values(["rank_test_score", "n_estimators"], kind="stable").reset_index(drop=True)


def calibration(y, p, bins=8):
    edges = np.linspace(0, 1, bins + 1)
    rows = []
    for lo, hi in zip(edges[:-1], edges[1:]):
        m = (p >= lo) & (p < hi if hi < 1 else p <= hi)
        if m.any():
            rows.append({"bin": f"{lo:.2f}-{hi:.2f}", "n": int(m.sum()), "mean_p": float(p[m].mean()), "rate": float(y[m].mean())})
    return rows


def evaluate(model, test):
    p = model.predict_proba(test[NUMERIC + CATEGORICAL])[:, 1]
    y = test["default"].to_numpy()
    metrics = {
        "auc": float(roc_auc_score(y, p)),
        "average_precision": float(average_precision_score(y, p)),
        "brier": float(brier_score_loss(y, p)),
    }
    return metrics, calibration(y, p), p


def importances(model):
    names = model.named_steps["prep"].get_feature_names_out()
    imp = model.named_steps["forest"].feature_importances_
    return sorted(zip(names, imp), key=lambda t: (-t[1], t[0]))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", default="credit_run")
    ap.add_argument("--jobs", type=int, default=CONFIG["jobs"])
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    cfg = dict(CONFIG, jobs=args.jobs)
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)

    set_seed(cfg["seed"])
    df = make_table(cfg["n_rows"], cfg["seed"])
    train, test = split_table(df, cfg["test_fraction"])
    log.info("train %d test %d default rate %.3f", len(train), len(test), train["default"].mean())

    t0 = time.time()
    search = run_search(train, cfg)
    log.info("grid search took %.1fs", time.time() - t0)

    table = results_table(search)
    table.to_csv(out / "grid.csv", index=False, float_format="%.6f")
    print(table.to_string(index=False, float_format=lambda v: f"{v:.5f}"))
    print("best:", json.dumps(search.best_params_, sort_keys=True), f"{search.best_score_:.5f}")

    metrics, calib, p = evaluate(search.best_estimator_, test)
    top = importances(search.best_estimator_)[:8]
    with open(out / "report.json", "w") as fh:
        json.dump(
            {
                "best_params": search.best_params_,
                "cv_auc": float(search.best_score_),
                "test": metrics,
                "calibration": calib,
                "importances": [{"feature": n, "value": float(v)} for n, v in top],
            },
            fh,
            indent=2,
        )
    pd.DataFrame({"row": np.arange(len(p)), "p_default": p}).to_csv(out / "scores.csv", index=False, float_format="%.6f")
    for k, v in metrics.items():
        print(f"test {k}: {v:.5f}")


if __name__ == "__main__":
    main()
