"""Churn model: scikit-learn pipeline, randomized + grid search with joblib workers, report and artifacts."""
import hashlib
import json
import logging
import os
import platform
import sys
import time
import warnings
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import sklearn
from sklearn.calibration import calibration_curve
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import classification_report, confusion_matrix, roc_auc_score
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

warnings.filterwarnings("ignore", category=FutureWarning)
RANDOM_STATE = 42
REPORTS = Path("reports")
MODELS = Path("models")

log = logging.getLogger("churn")


def setup_logging():
    Path("logs").mkdir(exist_ok=True)
    name = f"logs/train_{datetime.now():%Y%m%d_%H%M%S}.log"
    fmt = "%(asctime)s,%(msecs)03d [%(process)d] %(levelname)-8s %(name)s:%(lineno)d - %(message)s"
    logging.basicConfig(level=logging.INFO, format=fmt, datefmt="%Y-%m-%dT%H:%M:%S",
                        handlers=[logging.FileHandler(name), logging.StreamHandler(sys.stdout)])
    return name


@contextmanager
def stage(name, store):
    log.info(">>> %s", name)
    w, c = time.perf_counter(), time.process_time()
    yield
    store[name] = {"wall_s": round(time.perf_counter() - w, 4), "cpu_s": round(time.process_time() - c, 4)}
    log.info("<<< %s done in %.2fs (cpu %.2fs)", name, store[name]["wall_s"], store[name]["cpu_s"])


def load_customers(n=1600):
    rng = np.random.default_rng(RANDOM_STATE)
    df = pd.DataFrame({
        "customer_id": [f"C{100000 + i}" for i in range(n)],
        "tenure": rng.integers(1, 72, n),
        "monthly_charges": rng.normal(65, 22, n).clip(18, 130).round(2),
        "contract": rng.choice(["month", "one_year", "two_year"], n, p=[0.55, 0.25, 0.2]),
        "payment": rng.choice(["card", "transfer", "cheque"], n),
        "support_calls": rng.poisson(1.4, n).astype(float),
        "data_gb": rng.gamma(2.0, 9.0, n).round(2),
    })
    lin = (-1.2 - 0.035 * df.tenure + 0.018 * df.monthly_charges + 0.45 * df.support_calls
           + df.contract.map({"month": 0.9, "one_year": -0.3, "two_year": -1.2}) + 0.3 * (df.payment == "cheque"))
    df["churn"] = (rng.random(n) < 1 / (1 + np.exp(-lin))).astype(int)
    for col, rate in (("monthly_charges", 0.03), ("support_calls", 0.05), ("data_gb", 0.08)):
        df.loc[rng.random(n) < rate, col] = np.nan
    return df


def make_pipeline(clf, num, cat):
    pre = ColumnTransformer([
        ("num", Pipeline([("imp", SimpleImputer(strategy="median")), ("sc", StandardScaler())]), num),
        ("cat", OneHotEncoder(handle_unknown="ignore", sparse_output=False), cat),
    ])
    return Pipeline([("pre", pre), ("clf", clf)])


def search_all(X, y, num, cat):
    cv = StratifiedKFold(3, shuffle=True, random_state=RANDOM_STATE)
    specs = {
        "logreg": GridSearchCV(make_pipeline(LogisticRegression(max_iter=400), num, cat),
                               {"clf__C": [0.03, 0.1, 0.3, 1.0]}, cv=cv, scoring="roc_auc", verbose=2),
        "rf": RandomizedSearchCV(make_pipeline(RandomForestClassifier(n_estimators=40, random_state=RANDOM_STATE), num, cat),
                                 {"clf__max_depth": [3, 5, 8, None], "clf__min_samples_leaf": [1, 3, 6]}, n_iter=4,
                                 random_state=RANDOM_STATE, cv=cv, scoring="roc_auc", n_jobs=2, verbose=1),
        "hgb": GridSearchCV(make_pipeline(HistGradientBoostingClassifier(max_iter=30, random_state=RANDOM_STATE), num, cat),
                            {"clf__learning_rate": [0.05, 0.15]}, cv=cv, scoring="roc_auc", verbose=3),
    }
    fitted, tables = {}, []
    for name, s in specs.items():
        log.info("searching %s", name)
        s.fit(X, y)
        t = pd.DataFrame(s.cv_results_)
        t.insert(0, "model", name)
        tables.append(t.drop(columns=[c for c in t if c.startswith("param_")]))
        log.info("%s: best AUC %.5f with %s (refit %.3fs)", name, s.best_score_, s.best_params_, s.refit_time_)
        fitted[name] = s
    return fitted, pd.concat(tables, ignore_index=True)


def evaluate(model, X, y, ids):
    proba = model.predict_proba(X)[:, 1]
    pred = (proba >= 0.5).astype(int)
    print(classification_report(y, pred, digits=4))
    print(confusion_matrix(y, pred))
    frac, mean = calibration_curve(y, proba, n_bins=6)
    pd.DataFrame({"mean_pred": mean, "frac_pos": frac}).to_csv(REPORTS / "calibration.csv", index=False, float_format="%.6f")
    pd.DataFrame({"customer_id": ids, "proba": proba.round(6), "pred": pred}).to_csv(REPORTS / "scored_test.csv", index=False)
    return {"auc": float(roc_auc_score(y, proba)), "accuracy": float((pred == y).mean()), "n": int(len(y))}


def latency(model, row, n=40):
    ts = []
    for _ in range(n):
        t = time.perf_counter()
        model.predict_proba(row)
        ts.append((time.perf_counter() - t) * 1e3)
    return {f"p{q}_ms": round(float(np.percentile(ts, q)), 3) for q in (50, 95, 99)}


def main():
    logfile = setup_logging()
    for d in (REPORTS, MODELS):
        d.mkdir(exist_ok=True)
    t0, timings = time.time(), {}
    log.info("python %s sklearn %s host %s log %s", platform.python_version(), sklearn.__version__, platform.node(), logfile)
    with stage("load", timings):
        df = load_customers()
        fp = hashlib.sha256(pd.util.hash_pandas_object(df, index=False).values.tobytes()).hexdigest()[:16]
        log.info("rows=%d churn=%.4f fingerprint=%s", len(df), df.churn.mean(), fp)
    num, cat = ["tenure", "monthly_charges", "support_calls", "data_gb"], ["contract", "payment"]
    tr, te = train_test_split(df, test_size=0.25, stratify=df.churn, random_state=RANDOM_STATE)
    with stage("search", timings):
        fitted, table = search_all(tr[num + cat], tr.churn, num, cat)
    table.to_csv(REPORTS / "cv_results.csv", index=False)
    best = max(fitted, key=lambda k: fitted[k].best_score_)
    model = fitted[best].best_estimator_
    with stage("evaluate", timings):
        metrics = evaluate(model, te[num + cat], te.churn, te.customer_id)
        lat = latency(model, te[num + cat].head(1))
    log.info("best=%s test=%s", best, metrics)
    log.info("single-row latency: %s", lat)
    joblib.dump({"model": model, "features": num + cat, "trained_at": datetime.utcnow() if sys.version_info < (3, 12) else datetime.now(),
                 "metrics": metrics, "search": {k: {"score": v.best_score_, "refit_time": v.refit_time_} for k, v in fitted.items()}},
                MODELS / "churn.joblib")
    with open(MODELS / "model_card.json", "w") as f:
        json.dump({"model": best, "params": {k: str(v) for k, v in fitted[best].best_params_.items()}, "metrics": metrics,
                   "data_fingerprint": fp, "latency": lat, "stages": timings, "created": datetime.now().strftime("%d.%m.%Y %H:%M"),
                   "pid": os.getpid(), "duration": f"{time.time() - t0:.1f} sec"}, f, indent=2)
    log.info("total %.1fs", time.time() - t0)


if __name__ == "__main__":
    main()
