#!/usr/bin/env python
"""Gradient boosting for hourly bike demand (LightGBM), rolling-origin validation.

Every fold logs LightGBM's evaluation history; models go to models/<fold>.txt.
"""
import json
import logging
import os
import resource
import sys
import time
import uuid

import lightgbm as lgb
import numpy as np
import pandas as pd
from sklearn.metrics import mean_absolute_error, mean_squared_error

RUN_ID = uuid.uuid4().hex[:8]
SEED = 2023

PARAMS = {
    "objective": "regression",
    "metric": ["l2", "l1"],
    "learning_rate": 0.08,
    "num_leaves": 31,
    "min_data_in_leaf": 20,
    "feature_fraction": 0.8,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 1.0,
    "num_threads": 1,
    "seed": SEED,
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": 1,
}


def get_logger(path):
    logger = logging.getLogger("bike")
    logger.setLevel(logging.INFO)
    fmt = logging.Formatter("%(asctime)s | %(levelname)-5s | %(message)s", "%Y-%m-%d %H:%M:%S")
    for h in (logging.StreamHandler(sys.stdout), logging.FileHandler(path)):
        h.setFormatter(fmt)
        logger.addHandler(h)
    return logger


def simulate_demand(days=120):
    rng = np.random.default_rng(SEED)
    idx = pd.date_range("2022-03-01", periods=24 * days, freq="h")
    df = pd.DataFrame(index=idx)
    df["hour"] = idx.hour
    df["weekday"] = idx.day_of_week
    df["month"] = idx.month
    doy = idx.day_of_year.to_numpy()
    df["temp"] = 12 + 10 * np.sin((doy - 80) / 365 * 2 * np.pi) + rng.normal(0, 3, len(idx))
    df["rain"] = (rng.random(len(idx)) < 0.12).astype(int)
    commute = np.exp(-(df.hour - 8) ** 2 / 4) + np.exp(-(df.hour - 18) ** 2 / 6)
    base = 40 + 150 * commute * (df.weekday < 5) + 60 * np.exp(-(df.hour - 14) ** 2 / 12)
    df["count"] = rng.poisson(np.clip(base * (1 + 0.02 * df.temp) * (1 - 0.5 * df.rain), 1, None))
    return df


def add_features(df):
    out = df.copy()
    for lag in (24, 48, 168):
        out[f"lag_{lag}"] = out["count"].shift(lag)
    out["roll_mean_24"] = out["count"].shift(24).rolling(24).mean()
    out["sin_hour"] = np.sin(2 * np.pi * out.hour / 24)
    out["cos_hour"] = np.cos(2 * np.pi * out.hour / 24)
    return out.dropna()


def folds(df, n_folds=3, horizon=24 * 14):
    for k in range(n_folds, 0, -1):
        end = len(df) - (k - 1) * horizon
        yield df.iloc[: end - horizon], df.iloc[end - horizon: end]


def peak_rss_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    os.makedirs("models", exist_ok=True)
    logger = get_logger("train.log")
    lgb.register_logger(logger)
    logger.info("run_id=%s pid=%d lightgbm=%s", RUN_ID, os.getpid(), lgb.__version__)
    df = add_features(simulate_demand())
    features = [c for c in df.columns if c != "count"]
    logger.info("%d rows, %d features", len(df), len(features))

    start = time.time()
    records, preds = [], []
    importance = np.zeros(len(features))
    for k, (tr, va) in enumerate(folds(df)):
        t0 = time.time()
        dtrain = lgb.Dataset(tr[features], tr["count"])
        dvalid = lgb.Dataset(va[features], va["count"], reference=dtrain)
        history = {}
        booster = lgb.train(
            PARAMS, dtrain, num_boost_round=120, valid_sets=[dtrain, dvalid],
            valid_names=["train", "valid"],
            callbacks=[lgb.log_evaluation(20), lgb.early_stopping(15),
                       lgb.record_evaluation(history)])
        pred = booster.predict(va[features], num_iteration=booster.best_iteration)
        rmse = float(np.sqrt(mean_squared_error(va["count"], pred)))
        mae = float(mean_absolute_error(va["count"], pred))
        importance += booster.feature_importance("gain")
        booster.save_model(f"models/fold{k}.txt", num_iteration=booster.best_iteration)
        preds.append(pd.DataFrame({"fold": k, "y": va["count"], "pred": pred}, index=va.index))
        took = time.time() - t0
        records.append({"fold": k, "best_iter": booster.best_iteration, "rmse": rmse, "mae": mae,
                        "train_time": took})
        logger.info("fold %d: rmse=%.4f mae=%.4f best_iter=%d took %.2fs, peak memory %.1f MB",
                    k, rmse, mae, booster.best_iteration, took, peak_rss_mb())

    oof = pd.concat(preds)
    oof.to_csv("oof_predictions.csv", index_label="timestamp")
    imp = pd.Series(importance, index=features).sort_values(ascending=False)
    imp.to_csv("importance.csv", header=["gain"])
    table = pd.DataFrame(records)
    print(table.drop(columns="train_time").to_string(index=False))
    print(f"mean rmse: {table.rmse.mean():.6f}")
    with open("results.json", "w") as f:
        json.dump({"run_id": RUN_ID, "folds": records, "mean_rmse": float(table.rmse.mean()),
                   "elapsed_seconds": round(time.time() - start, 3),
                   "peak_memory_mb": round(peak_rss_mb(), 1)}, f, indent=1)
    logger.info("finished in %.1fs", time.time() - start)


if __name__ == "__main__":
    main()
