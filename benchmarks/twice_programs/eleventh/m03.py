"""Feature ranking for a machine-failure model.

Modelled on https://github.com/scikit-learn/scikit-learn/issues/12979
Ranks sensors by forest importance, keeps the best ones and scores a final model.
"""
import argparse
import json
import logging
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

LOG = logging.getLogger("sensor_ranking")


@dataclass
class Settings:
    seed: int = 7
    machines: int = 900
    sensors: int = 30
    trees: int = 60
    depth: int = 8
    keep: int = 8
    folds: int = 4
    report_dir: str = "report"


def simulate_sensors(s):
    rng = np.random.default_rng(s.seed)
    latent = rng.normal(size=(s.machines, 5))
    loadings = rng.normal(scale=0.7, size=(5, s.sensors))
    readings = latent @ loadings + rng.normal(scale=1.2, size=(s.machines, s.sensors))
    weights = rng.normal(size=5)
    logit = latent @ weights - 0.6 + rng.normal(scale=0.8, size=s.machines)
    failed = (logit > 0).astype(int)
    columns = [f"sensor_{i:02d}" for i in range(s.sensors)]
    frame = pd.DataFrame(readings, columns=columns)
    frame["age_months"] = rng.integers(1, 120, size=s.machines)
    frame["site"] = rng.choice(["north", "south", "coast"], size=s.machines)
    frame["failed"] = failed
    return frame


def clean(frame):
    numeric = frame.select_dtypes("number").columns.drop("failed")
    clipped = frame.copy()
    for column in numeric:
        lo, hi = frame[column].quantile([0.005, 0.995])
        clipped[column] = frame[column].clip(lo, hi)
    return pd.get_dummies(clipped, columns=["site"], dtype=float)


class FeatureRanker:
    def __init__(self, trees, depth):
        self.trees = trees
        self.depth = depth
        self.table = None

    def fit(self, X, y):
        forest = ExtraTreesClassifier(n_estimators=self.trees, max_depth=self.depth)  # cause
        forest.fit(X, y)  # cause
        spread = np.std([tree.feature_importances_ for tree in forest.estimators_], axis=0)
        self.table = pd.DataFrame({
            "feature": X.columns,
            "importance": forest.feature_importances_,
            "spread": spread,
        }).sort_values(["importance", "feature"], ascending=[False, True]).reset_index(drop=True)
        self.table["rank"] = np.arange(1, len(self.table) + 1)
        return self

    def top(self, k):
        return self.table["feature"].head(k).tolist()


def cross_validate(X, y, s):
    folds = StratifiedKFold(n_splits=s.folds, shuffle=True, random_state=s.seed)
    scores = []
    for number, (train_idx, val_idx) in enumerate(folds.split(X, y)):
        started = time.perf_counter()
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.5, max_iter=300))
        model.fit(X.iloc[train_idx], y.iloc[train_idx])
        p = model.predict_proba(X.iloc[val_idx])[:, 1]
        score = roc_auc_score(y.iloc[val_idx], p)
        scores.append(score)
        LOG.info("fold %d auc %.4f in %.2fs", number, score, time.perf_counter() - started)
    return scores


def final_scores(X_train, y_train, X_test, y_test):
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.5, max_iter=300))
    model.fit(X_train, y_train)
    p = model.predict_proba(X_test)[:, 1]
    return {
        "auc": float(roc_auc_score(y_test, p)),
        "average_precision": float(average_precision_score(y_test, p)),
        "coefficients": dict(zip(X_train.columns, model[-1].coef_[0].round(5).tolist())),
    }


def group_summary(table):
    kinds = table["feature"].str.split("_").str[0]
    return table.groupby(kinds)["importance"].sum().round(5).to_dict()


def write_report(out, table, result):
    out.mkdir(exist_ok=True)
    table.to_csv(out / "ranking.csv", index=False, float_format="%.6f")
    (out / "result.json").write_text(json.dumps(result, indent=2))
    lines = ["# Sensor ranking", "", "| rank | feature | importance |", "|---|---|---|"]
    for row in table.head(10).itertuples():
        lines.append(f"| {row.rank} | {row.feature} | {row.importance:.5f} |")
    lines += ["", f"Test AUC: {result['final']['auc']:.4f}"]
    (out / "report.md").write_text("\n".join(lines) + "\n")


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--keep", type=int, default=8)
    parser.add_argument("--trees", type=int, default=60)
    return parser.parse_args()


def main():
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s] %(message)s")
    args = parse_args()
    s = Settings(seed=args.seed, keep=args.keep, trees=args.trees)

    frame = clean(simulate_sensors(s))
    y = frame.pop("failed")
    LOG.info("%d machines, %d features, failure rate %.3f", len(frame), frame.shape[1], y.mean())
    X_train, X_test, y_train, y_test = train_test_split(
        frame, y, test_size=0.25, stratify=y, random_state=s.seed)

    ranker = FeatureRanker(s.trees, s.depth).fit(X_train, y_train)
    chosen = ranker.top(s.keep)
    scores = cross_validate(X_train[chosen], y_train, s)
    result = {
        "chosen": chosen,
        "cv_auc": [round(v, 5) for v in scores],
        "groups": group_summary(ranker.table),
        "final": final_scores(X_train[chosen], y_train, X_test[chosen], y_test),
    }
    write_report(Path(s.report_dir), ranker.table, result)

    print("top features:")
    for row in ranker.table.head(s.keep).itertuples():
        print(f"  {row.rank:2d}. {row.feature:<12s} {row.importance:.5f} +/- {row.spread:.5f}")
    print(f"cv auc   {np.mean(scores):.5f}")
    print(f"test auc {result['final']['auc']:.5f}")


if __name__ == "__main__":
    main()
