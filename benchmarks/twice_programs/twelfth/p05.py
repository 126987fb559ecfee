"""Exploratory analysis and feature screening for a tabular regression task.

Modelled on https://github.com/ThomasMeissnerDS/BlueCast/issues/52
A housing-like table is profiled, features are ranked and a model is fitted on the selected ones.
"""
import argparse
import json
import logging
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.feature_selection import mutual_info_regression
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.model_selection import train_test_split

logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
log = logging.getLogger("eda")


@dataclass
class EdaConfig:
    seed: int = 30
    rows: int = 700
    target: str = "Target"
    top_k: int = 6
    test_size: float = 0.25
    max_iter: int = 60
    out_dir: str = "eda"


def make_table(cfg):
    rng = np.random.default_rng(cfg.seed)
    n = cfg.rows
    df = pd.DataFrame({
        "rooms": rng.integers(1, 8, n),
        "bathrooms": rng.integers(1, 4, n),
        "floor": rng.integers(0, 12, n),
        "age_years": rng.integers(0, 90, n),
        "stations_nearby": rng.poisson(2.0, n),
        "school_grade": rng.integers(1, 11, n),
        "crime_index": rng.integers(0, 25, n),
        "parking": rng.integers(0, 3, n),
        "listing_week": rng.integers(1, 53, n),
        "agent_code": rng.integers(1, 40, n),
        "renovations": rng.poisson(0.7, n),
        "balconies": rng.integers(0, 3, n),
    })
    price = (38 * df.rooms + 17 * df.bathrooms + 2.2 * df.floor - 0.6 * df.age_years
             + 9 * df.stations_nearby + 5.5 * df.school_grade - 2.8 * df.crime_index
             + 8 * df.parking + 0.15 * df.rooms * df.school_grade)
    df["Target"] = (price + rng.normal(0, 30, n)).round(-1)
    missing = rng.random(n) < 0.05
    df.loc[missing, "renovations"] = np.nan
    return df


class FeatTypeDetector:
    def fit(self, df):
        self.num_columns, self.cat_columns = [], []
        for c in df.columns:
            target = self.num_columns if pd.api.types.is_numeric_dtype(df[c]) else self.cat_columns
            target.append(c)
        return self


def profile(df):
    rows = []
    for c in df.columns:
        s = df[c]
        rows.append({"column": c, "missing": int(s.isna().sum()), "unique": int(s.nunique()),
                     "mean": round(float(s.mean()), 4), "std": round(float(s.std()), 4),
                     "skew": round(float(s.skew()), 4)})
    return pd.DataFrame(rows)


def correlation_to_target(df, target):
    corr = df.corr(method="spearman")[target].drop(target)
    return corr.reindex(corr.abs().sort_values(ascending=False).index)


def mutual_info_to_target(df, target, class_problem="regression", **extra_params):
    """Mutual information of the numerical features to the target."""
    if class_problem != "regression":
        raise ValueError("only regression tables are supported here")
    x, y = df.drop(columns=[target]), df[target]
    scores = mutual_info_regression(x, y, **extra_params)  # cause
    return pd.Series(scores, index=x.columns).sort_values(ascending=False)


def select(mi, k):
    return mi.index[:k].tolist()


def fit_model(df, features, cfg):
    x_train, x_test, y_train, y_test = train_test_split(
        df[features], df[cfg.target], test_size=cfg.test_size, random_state=cfg.seed)
    model = HistGradientBoostingRegressor(max_iter=cfg.max_iter, random_state=cfg.seed)
    model.fit(x_train, y_train)
    pred = model.predict(x_test)
    return {"mae": round(float(mean_absolute_error(y_test, pred)), 5),
            "r2": round(float(r2_score(y_test, pred)), 5),
            "n_train": len(x_train), "n_test": len(x_test)}


def redundancy(df, features, threshold=0.6):
    corr = df[features].corr().abs()
    pairs = []
    for i, a in enumerate(features):
        for b in features[i + 1:]:
            if corr.loc[a, b] > threshold:
                pairs.append([a, b, round(float(corr.loc[a, b]), 3)])
    return pairs


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--rows", type=int, default=EdaConfig.rows)
    ap.add_argument("--top-k", type=int, default=EdaConfig.top_k)
    args = ap.parse_args()
    cfg = EdaConfig(rows=args.rows, top_k=args.top_k)
    out = Path(cfg.out_dir)
    out.mkdir(exist_ok=True)

    df = make_table(cfg)
    types = FeatTypeDetector().fit(df)
    log.info("numeric columns: %d, categorical: %d", len(types.num_columns), len(types.cat_columns))
    profile(df).to_csv(out / "profile.csv", index=False)
    df["renovations"] = df["renovations"].fillna(df["renovations"].median())

    corr = correlation_to_target(df, cfg.target)
    corr.to_csv(out / "spearman.csv", header=["rho"])
    mi = mutual_info_to_target(df.loc[:, types.num_columns], cfg.target, "regression")
    mi.to_csv(out / "mutual_information.csv", header=["mi"])
    chosen = select(mi, cfg.top_k)
    log.info("selected features: %s", ", ".join(chosen))

    result = fit_model(df, chosen, cfg)
    result["features"] = chosen
    result["redundant"] = redundancy(df, chosen)
    (out / "result.json").write_text(json.dumps(result, indent=1))

    print("feature             rho      MI")
    for c in mi.index:
        print(f"{c:17s} {corr[c]:+.4f} {mi[c]:.6f}")
    print(f"selected: {', '.join(chosen)}")
    print(f"MAE={result['mae']:.4f} R2={result['r2']:.4f}")


if __name__ == "__main__":
    main()
