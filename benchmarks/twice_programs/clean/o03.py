"""Tabular competition pipeline (LightGBM + XGBoost + CatBoost, joblib folds), in the style of a public Kaggle solution repo."""
import argparse
import gc
import logging
import os
import pickle
import sys
import time
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import lightgbm as lgb
import numpy as np
import pandas as pd
import psutil
import xgboost as xgb
from catboost import CatBoostClassifier
from joblib import Parallel, delayed
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold

SEED = 42
logger = logging.getLogger("main")


@contextmanager
def timer(name):
    t0 = time.time()
    mem0 = psutil.Process(os.getpid()).memory_info().rss / 2.0 ** 30
    yield
    mem1 = psutil.Process(os.getpid()).memory_info().rss / 2.0 ** 30
    sign = "+" if mem1 >= mem0 else "-"
    logger.info(f"[{name}] done in {time.time() - t0:.3f} s ({mem1:.2f}GB, {sign}{abs(mem1 - mem0):.3f}GB)")


def setup_logger(log_dir):
    log_dir.mkdir(parents=True, exist_ok=True)
    fmt = logging.Formatter("%(asctime)s|%(process)d|%(levelname)s|%(name)s| %(message)s")
    for h in (logging.StreamHandler(sys.stderr),
              logging.FileHandler(log_dir / f"train_{datetime.now():%Y%m%d_%H%M%S}.log")):
        h.setFormatter(fmt)
        logger.addHandler(h)
    logger.setLevel(logging.INFO)


def make_data(n, seed):
    rng = np.random.default_rng(seed)
    df = pd.DataFrame({
        "income": rng.lognormal(10, 0.6, n).round(2),
        "age": rng.integers(18, 80, n),
        "n_loans": rng.poisson(1.7, n),
        "utilization": rng.beta(2, 4, n),
        "region": rng.choice(list("ABCDEFG"), n),
        "job": rng.choice(["clerk", "driver", "nurse", "teacher", "none"], n),
        "months_since": rng.exponential(24, n),
    })
    z = (2.2 * df.utilization - 0.02 * df.age + 0.25 * df.n_loans - 0.4 * (np.log(df.income) - 10)
         + 0.5 * (df.region.isin(["A", "C"])) - 0.3 * (df.job == "nurse") - 0.6)
    df["target"] = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    return df


def add_features(train, test):
    both = pd.concat([train.drop(columns="target"), test.drop(columns="target")], ignore_index=True)
    for c in ("region", "job"):
        both[c] = both[c].astype("category").cat.codes
        both[f"{c}_freq"] = both[c].map(both[c].value_counts(normalize=True))
    both["income_per_loan"] = both.income / (1 + both.n_loans)
    both["income_rank_region"] = both.groupby("region").income.rank(pct=True)
    both["util_x_age"] = both.utilization * both.age
    n = len(train)
    return both.iloc[:n].reset_index(drop=True), both.iloc[n:].reset_index(drop=True)


def fit_fold(kind, fold, tr, va, X, y, X_test):
    """One model on one fold; runs inside a joblib worker."""
    start = time.perf_counter()
    Xtr, ytr, Xva, yva = X.iloc[tr], y[tr], X.iloc[va], y[va]
    if kind == "lgb":
        m = lgb.train(
            dict(objective="binary", learning_rate=0.06, num_leaves=15, bagging_fraction=0.8, bagging_freq=1,
                 feature_fraction=0.8, seed=SEED + fold, num_threads=1, deterministic=True, force_row_wise=True,
                 verbose=-1),
            lgb.Dataset(Xtr, ytr), num_boost_round=120)
        p_va, p_te, imp = m.predict(Xva), m.predict(X_test), m.feature_importance("gain")
    elif kind == "xgb":
        m = xgb.XGBClassifier(n_estimators=90, max_depth=4, learning_rate=0.08, subsample=0.8, colsample_bytree=0.8,
                              n_jobs=1, random_state=SEED + fold, tree_method="hist")
        m.fit(Xtr, ytr)
        p_va, p_te, imp = m.predict_proba(Xva)[:, 1], m.predict_proba(X_test)[:, 1], m.feature_importances_
    else:
        m = CatBoostClassifier(iterations=80, depth=4, learning_rate=0.1, random_seed=SEED + fold, thread_count=1,
                               verbose=False, train_dir=f"catboost_info/fold{fold}")
        m.fit(Xtr, ytr, eval_set=(Xva, yva), use_best_model=False)
        p_va, p_te, imp = m.predict_proba(Xva)[:, 1], m.predict_proba(X_test)[:, 1], m.get_feature_importance()
    return dict(kind=kind, fold=fold, va=va, p_va=p_va, p_te=p_te, imp=np.asarray(imp, dtype=float),
                auc=roc_auc_score(yva, p_va), pid=os.getpid(), seconds=time.perf_counter() - start)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--n-train", type=int, default=6000)
    ap.add_argument("--n-test", type=int, default=2000)
    ap.add_argument("--folds", type=int, default=4)
    ap.add_argument("--n-jobs", type=int, default=2)
    ap.add_argument("--out", type=Path, default=Path("output"))
    args = ap.parse_args()
    setup_logger(Path("logs"))
    args.out.mkdir(exist_ok=True)
    Path("catboost_info").mkdir(exist_ok=True)
    logger.info(f"args: {args}")

    with timer("load data"):
        train, test = make_data(args.n_train, SEED), make_data(args.n_test, SEED + 1)
        train.to_feather(args.out / "train.feather")
    with timer("feature engineering"):
        X, X_test = add_features(train, test)
        y = train.target.to_numpy()
    logger.info(f"train shape: {X.shape}, test shape: {X_test.shape}, positive rate: {y.mean():.4f}")

    splits = list(StratifiedKFold(args.folds, shuffle=True, random_state=SEED).split(X, y))
    kinds = ["lgb", "xgb", "cat"]
    with timer("train models"):
        res = Parallel(n_jobs=args.n_jobs)(
            delayed(fit_fold)(k, f, tr, va, X, y, X_test) for k in kinds for f, (tr, va) in enumerate(splits))

    oof = {k: np.zeros(len(X)) for k in kinds}
    pred = {k: np.zeros(len(X_test)) for k in kinds}
    imp = pd.DataFrame({"feature": X.columns})
    for r in res:
        oof[r["kind"]][r["va"]] = r["p_va"]
        pred[r["kind"]] += r["p_te"] / args.folds
        col = f"{r['kind']}_gain"
        imp[col] = imp.get(col, 0.0) + r["imp"] / args.folds
        logger.info(f"{r['kind']} fold {r['fold']}: auc={r['auc']:.6f} | pid={r['pid']} | {r['seconds']:.2f}s")

    rows = []
    for k in kinds:
        secs = [r["seconds"] for r in res if r["kind"] == k]
        rows.append({"model": k, "cv_auc": roc_auc_score(y, oof[k]), "cv_logloss": log_loss(y, oof[k]),
                     "train_time": sum(secs), "date": datetime.now().isoformat(timespec="seconds")})
    blend = sum(pd.Series(oof[k]).rank() for k in kinds) / len(kinds)
    rows.append({"model": "rank_blend", "cv_auc": roc_auc_score(y, blend), "cv_logloss": np.nan,
                 "train_time": sum(r["seconds"] for r in res), "date": datetime.now().isoformat(timespec="seconds")})
    board = pd.DataFrame(rows).sort_values("cv_auc", ascending=False)
    board.to_csv(args.out / "leaderboard.csv", index=False)
    print(board[["model", "cv_auc", "cv_logloss", "train_time"]].to_string(index=False))

    imp.sort_values("lgb_gain", ascending=False).to_csv(args.out / "importance.csv", index=False)
    np.save(args.out / "oof.npy", np.column_stack([oof[k] for k in kinds]))
    sub = pd.DataFrame({"id": np.arange(len(X_test)), "target": np.mean([pred[k] for k in kinds], axis=0)})
    sub.to_csv(args.out / "submission.csv", index=False, float_format="%.8f")
    with open(args.out / "results.pkl", "wb") as f:
        pickle.dump({"created": datetime.now(), "oof": oof, "fold_auc": [(r["kind"], r["fold"], r["auc"]) for r in res],
                     "fold_time": [r["seconds"] for r in res]}, f)
    gc.collect()
    logger.info(f"submission: mean={sub.target.mean():.6f} std={sub.target.std():.6f}")


if __name__ == "__main__":
    with_t = time.time()
    main()
    print(f"Elapsed: {time.strftime('%H:%M:%S', time.gmtime(time.time() - with_t))}")
