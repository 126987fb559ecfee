"""Churn scoring: build navigation features per customer from the event log,
train CatBoost on labelled customers and score the active ones.

Modelled on: https://github.com/catboost/catboost/issues/1980
"""
import argparse
import json
import logging
from pathlib import Path

import numpy as np
import pandas as pd
from catboost import CatBoostClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("churn")

SEED = 2022
EXTRACTION_END = pd.Timestamp("2026-11-01 00:00:00")


def extract_events(n_customers=1500, seed=SEED):
    """The navigation log as the warehouse delivers it."""
    rng = np.random.default_rng(seed)
    frames = []
    churned = rng.random(n_customers) < 0.3
    for customer in range(n_customers):
        rate = rng.gamma(2.0, 9.0) + 2
        age = rng.uniform(0, 180, rng.poisson(rate))
        if churned[customer]:
            age = age[rng.random(len(age)) < np.clip(age / 110 + 0.1, 0, 1)]
        frames.append(pd.DataFrame({
            "id_person": customer,
            "ts": EXTRACTION_END - pd.to_timedelta((age * 86400).round(), unit="s"),
            "kind": rng.choice(["visit", "click", "purchase"], len(age), p=[0.6, 0.33, 0.07]),
        }))
    people = pd.DataFrame({
        "id_person": np.arange(n_customers),
        "number_products": rng.integers(1, 6, n_customers),
        "segment": rng.choice(["web", "store", "partner"], n_customers),
        "churn": churned.astype(int),
    })
    return pd.concat(frames, ignore_index=True), people


def count_between(events, age, low, high, name):
    inside = events[(age >= low) & (age < high)]
    return inside.groupby("id_person").size().rename(name)


def build_features(events, people):
    """Activity windows, their variation, and decayed activity."""
    now = pd.Timestamp.now()  # cause
    age = (now - events["ts"]).dt.total_seconds() / 86400.0
    visits = events["kind"] == "visit"
    parts = [
        count_between(events[visits], age[visits], 0, 60, "visits_last60d"),
        count_between(events[visits], age[visits], 60, 120, "visits_previous60d"),
        count_between(events[~visits], age[~visits], 0, 180, "clicks_last180d"),
        age.groupby(events["id_person"]).min().rename("recency"),
        np.exp(-age / 25.0).groupby(events["id_person"]).sum().rename("momentum"),
    ]
    x = people.set_index("id_person")[["number_products", "segment"]].join(parts)
    counts = ["visits_last60d", "visits_previous60d", "clicks_last180d", "momentum"]
    x[counts] = x[counts].fillna(0.0)
    x["recency"] = x["recency"].fillna(365.0)
    x["visits_variation"] = (x["visits_last60d"] + 1) / (x["visits_previous60d"] + 1)
    return x


def train(x, y):
    model = CatBoostClassifier(iterations=120, depth=4, learning_rate=0.1, random_seed=SEED,
                               cat_features=["segment"], thread_count=1, verbose=False,
                               allow_writing_files=False)
    x_fit, x_valid, y_fit, y_valid = train_test_split(x, y, test_size=0.25, stratify=y, random_state=SEED)
    model.fit(x_fit, y_fit)
    auc = roc_auc_score(y_valid, model.predict_proba(x_valid)[:, 1])
    return model, float(auc)


def ranges(scores):
    """Number of customers in four ranges of the churn probability."""
    bins = np.digitize(scores, [0.25, 0.5, 0.75])
    return {name: int((bins == k).sum()) for k, name in enumerate(["low", "medium", "high", "critical"])}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="scores")
    args = parser.parse_args()
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)

    events, people = extract_events()
    log.info("%d events of %d customers", len(events), len(people))
    x = build_features(events, people)
    y = people.set_index("id_person")["churn"]
    labelled = x.index % 5 != 0
    model, auc = train(x[labelled], y[labelled])
    log.info("validation AUC %.4f", auc)

    active = x[~labelled]
    scores = model.predict_proba(active)[:, 1]
    table = active.assign(score=scores).sort_values("score", ascending=False)
    table.to_csv(out / "predictions.csv", float_format="%.9f")
    importance = dict(zip(x.columns, model.get_feature_importance()))
    summary = {
        "auc": round(auc, 6),
        "ranges": ranges(scores),
        "mean_recency": round(float(x["recency"].mean()), 6),
        "mean_momentum": round(float(x["momentum"].mean()), 9),
        "importance": {k: round(float(v), 4) for k, v in sorted(importance.items(), key=lambda kv: -kv[1])},
    }
    (out / "summary.json").write_text(json.dumps(summary, indent=2))
    print(f"AUC {summary['auc']:.4f}")
    print("ranges:", summary["ranges"])
    print(f"mean recency {summary['mean_recency']:.5f} days")
    for name, value in list(summary["importance"].items())[:5]:
        print(f"  {name:20s} {value:7.3f}")


if __name__ == "__main__":
    main()
