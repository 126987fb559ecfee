"""Random forest on the passenger data: compare impurity-based and permutation
importances and drop the features that do not matter.

Modelled on: https://github.com/scikit-learn/scikit-learn/pull/15058
"""
import csv
import json
import logging

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.inspection import permutation_importance
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("importance")

CATEGORICAL = ["pclass", "sex", "embarked", "random_cat"]
NUMERICAL = ["age", "sibsp", "parch", "fare", "random_num"]


def load_passengers(n=1100, seed=42):
    rng = np.random.RandomState(seed)
    df = pd.DataFrame({
        "pclass": rng.choice(["1", "2", "3"], n, p=[0.25, 0.2, 0.55]),
        "sex": rng.choice(["male", "female"], n, p=[0.64, 0.36]),
        "embarked": rng.choice(["S", "C", "Q"], n, p=[0.7, 0.2, 0.1]),
        "age": rng.gamma(5, 6, n).round(1),
        "sibsp": rng.poisson(0.5, n),
        "parch": rng.poisson(0.4, n),
    })
    base = df["pclass"].map({"1": 80.0, "2": 22.0, "3": 12.0})
    df["fare"] = (base * rng.lognormal(0, 0.4, n)).round(2)
    df.loc[rng.rand(n) < 0.18, "age"] = np.nan
    # two features without any information
    df["random_cat"] = rng.choice(["a", "b", "c"], n)
    df["random_num"] = rng.randn(n)
    logit = (-0.7 + 2.4 * (df["sex"] == "female") + 0.9 * (df["pclass"] == "1")
             - 0.8 * (df["pclass"] == "3") - 0.02 * (df["age"].fillna(30) - 30)
             - 0.25 * df["sibsp"])
    y = (rng.rand(n) < 1 / (1 + np.exp(-logit))).astype(int)
    return df, pd.Series(y, name="survived")


def make_model(categorical, numerical, seed=42):
    preprocessing = ColumnTransformer([
        ("cat", OneHotEncoder(handle_unknown="ignore"), categorical),
        ("num", SimpleImputer(strategy="mean"), numerical),
    ])
    return Pipeline([
        ("preprocess", preprocessing),
        ("classifier", RandomForestClassifier(n_estimators=60, random_state=seed)),
    ])


def impurity_importances(model, categorical, numerical):
    encoder = model.named_steps["preprocess"].named_transformers_["cat"]
    names = list(encoder.get_feature_names_out(categorical)) + numerical
    values = model.named_steps["classifier"].feature_importances_
    return dict(sorted(zip(names, values.tolist()), key=lambda kv: -kv[1]))


def permutation_importances(model, X, y):
    result = permutation_importance(model, X, y, n_repeats=5)  # cause
    order = np.argsort(-result.importances_mean, kind="stable")
    return [(X.columns[i], float(result.importances_mean[i]), float(result.importances_std[i]))
            for i in order]


def select(rows, z=1.0):
    """Keep the features whose importance is clearly above zero."""
    return [name for name, mean, std in rows if mean - z * std > 0]


def write_table(path, rows):
    with open(path, "w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["feature", "mean", "std"])
        for name, mean, std in rows:
            writer.writerow([name, f"{mean:.6f}", f"{std:.6f}"])


def main():
    X, y = load_passengers()
    X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=42)
    model = make_model(CATEGORICAL, NUMERICAL).fit(X_train, y_train)
    log.info("train accuracy %.3f", model.score(X_train, y_train))
    log.info("test accuracy %.3f", model.score(X_test, y_test))

    impurity = impurity_importances(model, CATEGORICAL, NUMERICAL)
    print("impurity-based importances")
    for name, value in list(impurity.items())[:6]:
        print(f"  {name:12s} {value:.4f}")

    on_test = permutation_importances(model, X_test, y_test)
    write_table("importance_test.csv", on_test)
    print("permutation importances")
    for name, mean, std in on_test:
        print(f"  {name:12s} {mean:+.4f} +- {std:.4f}")

    kept = select(on_test)
    reduced = make_model([c for c in CATEGORICAL if c in kept], [c for c in NUMERICAL if c in kept])
    reduced.fit(X_train[kept], y_train)
    summary = {
        "accuracy_all": round(model.score(X_test, y_test), 5),
        "accuracy_reduced": round(reduced.score(X_test[kept], y_test), 5),
        "kept": sorted(kept),
        "impurity": {k: round(v, 5) for k, v in impurity.items()},
    }
    with open("summary.json", "w") as handle:
        json.dump(summary, handle, indent=2)
    log.info("kept %d of %d features", len(kept), X.shape[1])
    print(f"accuracy with all {summary['accuracy_all']:.4f}, reduced {summary['accuracy_reduced']:.4f}")


if __name__ == "__main__":
    main()
