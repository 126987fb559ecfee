"""Train, evaluate and register an XGBoost churn model (MLOps-template style).

Usage: python train.py --config (built-in defaults) --artifacts artifacts/
"""
import argparse
import getpass
import hashlib
import json
import logging
import os
import platform
import sys
import time
import uuid
from datetime import datetime, timezone
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import sklearn
import xgboost as xgb
import yaml
from sklearn.compose import ColumnTransformer
from sklearn.metrics import (average_precision_score, brier_score_loss, confusion_matrix, f1_score, precision_score,
                             recall_score, roc_auc_score)
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

DEFAULT_CONFIG = """
data: {rows: 5000, test_size: 0.2, valid_size: 0.15, seed: 42}
features:
  numeric: [tenure, monthly_charges, total_charges, support_calls]
  categorical: [contract, internet, payment]
model:
  n_estimators: 150
  max_depth: 4
  learning_rate: 0.1
  subsample: 0.8
  colsample_bytree: 0.8
  min_child_weight: 3
  early_stopping_rounds: 20
threshold: 0.4
"""

logger = logging.getLogger("churn.train")


def setup_logging(artifacts: Path):
    fmt = logging.Formatter("[%(asctime)s] %(levelname)s [%(name)s.%(funcName)s:%(lineno)d] %(message)s")
    for h in (logging.StreamHandler(sys.stdout), logging.FileHandler(artifacts / "train.log", mode="w")):
        h.setFormatter(fmt)
        logging.getLogger().addHandler(h)
    logging.getLogger().setLevel(logging.INFO)


def load_data(rows, seed):
    rng = np.random.default_rng(seed)
    df = pd.DataFrame({
        "customer_id": [f"C{i:06d}" for i in range(rows)],
        "tenure": rng.integers(0, 72, rows),
        "monthly_charges": rng.normal(65, 25, rows).clip(18, 120).round(2),
        "support_calls": rng.poisson(1.2, rows),
        "contract": rng.choice(["month-to-month", "one-year", "two-year"], rows, p=[0.55, 0.25, 0.2]),
        "internet": rng.choice(["dsl", "fiber", "none"], rows, p=[0.35, 0.45, 0.2]),
        "payment": rng.choice(["card", "transfer", "check"], rows),
    })
    df["total_charges"] = (df["tenure"] * df["monthly_charges"]).round(2)
    logit = (-0.9 - 0.035 * df["tenure"] + 0.012 * df["monthly_charges"] + 0.35 * df["support_calls"]
             + 0.9 * (df["contract"] == "month-to-month") + 0.4 * (df["internet"] == "fiber") - 0.6)
    df["churn"] = (rng.random(rows) < 1 / (1 + np.exp(-logit))).astype(int)
    return df


def data_fingerprint(df):
    return hashlib.md5(pd.util.hash_pandas_object(df, index=False).values.tobytes()).hexdigest()


def build_preprocessor(cfg):
    return ColumnTransformer([
        ("num", StandardScaler(), cfg["features"]["numeric"]),
        ("cat", OneHotEncoder(handle_unknown="ignore"), cfg["features"]["categorical"]),
    ])


def evaluate(y, p, threshold):
    pred = (p >= threshold).astype(int)
    tn, fp, fn, tp = confusion_matrix(y, pred).ravel()
    return {"roc_auc": float(roc_auc_score(y, p)), "pr_auc": float(average_precision_score(y, p)),
            "brier": float(brier_score_loss(y, p)), "f1": float(f1_score(y, pred)),
            "precision": float(precision_score(y, pred)), "recall": float(recall_score(y, pred)),
            "confusion": {"tn": int(tn), "fp": int(fp), "fn": int(fn), "tp": int(tp)}}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--artifacts", type=Path, default=Path("artifacts"))
    ap.add_argument("--config", type=Path)
    args = ap.parse_args()
    cfg = yaml.safe_load(args.config.read_text() if args.config else DEFAULT_CONFIG)
    args.artifacts.mkdir(parents=True, exist_ok=True)
    setup_logging(args.artifacts)
    run_id = uuid.uuid4().hex
    started = datetime.now(timezone.utc)
    durations = {}
    logger.info("run_id=%s", run_id)

    t = time.perf_counter()
    seed = cfg["data"]["seed"]
    df = load_data(cfg["data"]["rows"], seed)
    X, y = df.drop(columns=["churn"]), df["churn"]
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=cfg["data"]["test_size"], stratify=y,
                                                        random_state=seed)
    X_train, X_val, y_train, y_val = train_test_split(X_train, y_train, test_size=cfg["data"]["valid_size"],
                                                      stratify=y_train, random_state=seed)
    durations["load_data"] = time.perf_counter() - t
    logger.info("data rows=%d churn_rate=%.4f md5=%s", len(df), y.mean(), data_fingerprint(df))

    t = time.perf_counter()
    pre = build_preprocessor(cfg)
    Z_train, Z_val = pre.fit_transform(X_train), pre.transform(X_val)
    model = xgb.XGBClassifier(**cfg["model"], objective="binary:logistic", eval_metric=["logloss", "auc"],
                              tree_method="hist", random_state=seed, n_jobs=1)
    model.fit(Z_train, y_train, eval_set=[(Z_train, y_train), (Z_val, y_val)], verbose=25)
    durations["fit"] = time.perf_counter() - t
    logger.info("best_iteration=%d best_score=%.6f (fit took %.2fs)", model.best_iteration, model.best_score,
                durations["fit"])

    t = time.perf_counter()
    proba = model.predict_proba(pre.transform(X_test))[:, 1]
    metrics = evaluate(y_test, proba, cfg["threshold"])
    durations["evaluate"] = time.perf_counter() - t
    for k, v in metrics.items():
        logger.info("test_%s = %s", k, v)

    joblib.dump(Pipeline([("pre", pre), ("clf", model)]), args.artifacts / "model.joblib")
    model.get_booster().save_model(args.artifacts / "booster.json")
    (args.artifacts / "config.yaml").write_text(yaml.safe_dump(cfg, sort_keys=False))
    (args.artifacts / "metrics.json").write_text(json.dumps(metrics, indent=2))
    pd.DataFrame({"customer_id": X_test["customer_id"], "y": y_test, "p": proba}).to_csv(
        args.artifacts / "test_predictions.csv", index=False)
    pd.DataFrame(model.evals_result()["validation_1"]).to_csv(args.artifacts / "learning_curve.csv",
                                                              index_label="round")
    metadata = {
        "run_id": run_id, "started_at": started.isoformat(), "finished_at": datetime.now(timezone.utc).isoformat(),
        "user": getpass.getuser(), "hostname": platform.node(), "pid": os.getpid(),
        "python": platform.python_version(), "cwd": os.getcwd(),
        "packages": {"xgboost": xgb.__version__, "scikit-learn": sklearn.__version__, "pandas": pd.__version__},
        "durations_sec": {k: round(v, 4) for k, v in durations.items()},
        "data_md5": data_fingerprint(df),
    }
    (args.artifacts / "run_metadata.json").write_text(json.dumps(metadata, indent=2))
    logger.info("artifacts written to %s", args.artifacts.resolve())


if __name__ == "__main__":
    main()
