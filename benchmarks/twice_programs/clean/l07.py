# LightGBM baseline: feature engineering + stratified K-fold, Kaggle-kernel style
import gc
import os
import time
import warnings
from contextlib import contextmanager
from datetime import datetime

import lightgbm as lgb
import numpy as np
import pandas as pd
import psutil
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold

warnings.simplefilter(action="ignore", category=FutureWarning)

SEED = 2019
N_FOLDS = 4
TARGET = "default"


@contextmanager
def timer(title):
    t0 = time.time()
    yield
    mem = psutil.Process(os.getpid()).memory_info().rss / 2**20
    print("{} - done in {:.2f}s (rss {:.1f} MB)".format(title, time.time() - t0, mem))


def reduce_mem_usage(df, verbose=True):
    start_mem = df.memory_usage().sum() / 1024**2
    for col in df.columns:
        if df[col].dtype == np.float64:
            df[col] = df[col].astype(np.float32)
        elif df[col].dtype == np.int64 and df[col].abs().max() < np.iinfo(np.int32).max:
            df[col] = df[col].astype(np.int32)
    end_mem = df.memory_usage().sum() / 1024**2
    if verbose:
        print("Mem. usage decreased to {:5.2f} Mb ({:.1f}% reduction)".format(
            end_mem, 100 * (start_mem - end_mem) / start_mem))
    return df


def application_table(n_train=4000, n_test=1200):
    rng = np.random.default_rng(SEED)
    n = n_train + n_test
    df = pd.DataFrame({
        "sk_id": np.arange(100000, 100000 + n),
        "income": rng.lognormal(10.5, 0.5, n),
        "credit": rng.lognormal(12, 0.6, n),
        "age_days": rng.integers(7300, 25000, n),
        "employed_days": np.where(rng.random(n) < 0.15, np.nan, rng.exponential(1800, n)),
        "ext_source_1": np.where(rng.random(n) < 0.4, np.nan, rng.beta(4, 3, n)),
        "ext_source_2": rng.beta(4, 3, n),
        "contract": rng.choice(["cash", "revolving"], n, p=[0.9, 0.1]),
        "education": rng.choice(["lower", "secondary", "higher"], n, p=[0.1, 0.6, 0.3]),
    })
    z = (-1.6 - 3.0 * (df["ext_source_2"] - 0.57) + 0.4 * np.log(df["credit"] / df["income"] / 4.5)
         - 0.00005 * (df["age_days"] - 16000) + 0.5 * (df["education"] == "lower"))
    y = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(float)
    y[n_train:] = np.nan
    df[TARGET] = y
    return df


def bureau_table(ids):
    rng = np.random.default_rng(SEED + 1)
    k = rng.poisson(3, len(ids))
    rep = np.repeat(ids, k)
    return pd.DataFrame({"sk_id": rep, "days_credit": -rng.integers(1, 3000, len(rep)),
                         "amt": rng.lognormal(10, 1, len(rep)), "active": rng.integers(0, 2, len(rep))})


def add_features(df):
    df["credit_income_ratio"] = df["credit"] / df["income"]
    df["employed_to_age"] = df["employed_days"] / df["age_days"]
    df["ext_mean"] = df[["ext_source_1", "ext_source_2"]].mean(axis=1)
    df["income_by_edu"] = df["income"] / df.groupby("education")["income"].transform("median")
    for c in ["contract", "education"]:
        df[c], _ = pd.factorize(df[c])
    return df


def bureau_agg(bureau):
    agg = bureau.groupby("sk_id").agg({"days_credit": ["min", "max", "mean"], "amt": ["sum", "mean"],
                                       "active": ["mean"]})
    agg.columns = ["BURO_" + "_".join(c).upper() for c in agg.columns]
    agg["BURO_COUNT"] = bureau.groupby("sk_id").size()
    return agg


def kfold_lightgbm(df):
    train_df, test_df = df[df[TARGET].notnull()], df[df[TARGET].isnull()]
    print("Starting LightGBM. Train shape: {}, test shape: {}".format(train_df.shape, test_df.shape))
    feats = [f for f in train_df.columns if f not in [TARGET, "sk_id"]]
    folds = StratifiedKFold(n_splits=N_FOLDS, shuffle=True, random_state=1001)
    oof, sub = np.zeros(len(train_df)), np.zeros(len(test_df))
    importance, scores = [], []
    params = dict(objective="binary", metric="auc", learning_rate=0.05, num_leaves=15, feature_fraction=0.8,
                  bagging_fraction=0.8, bagging_freq=1, min_child_samples=40, seed=SEED, deterministic=True,
                  force_row_wise=True, verbosity=-1)
    for n_fold, (tr, va) in enumerate(folds.split(train_df[feats], train_df[TARGET])):
        t0 = time.time()
        dtr = lgb.Dataset(train_df[feats].iloc[tr], train_df[TARGET].iloc[tr])
        dva = lgb.Dataset(train_df[feats].iloc[va], train_df[TARGET].iloc[va], reference=dtr)
        clf = lgb.train(params, dtr, 200, valid_sets=[dtr, dva], valid_names=["train", "valid"],
                        callbacks=[lgb.early_stopping(30, verbose=False), lgb.log_evaluation(50)])
        oof[va] = clf.predict(train_df[feats].iloc[va], num_iteration=clf.best_iteration)
        sub += clf.predict(test_df[feats], num_iteration=clf.best_iteration) / N_FOLDS
        importance.append(pd.DataFrame({"feature": feats, "importance": clf.feature_importance("gain"),
                                        "fold": n_fold + 1}))
        auc = roc_auc_score(train_df[TARGET].iloc[va], oof[va])
        scores.append(auc)
        print("Fold %2d AUC : %.6f  best_iter %d  [%.1f s]" % (n_fold + 1, auc, clf.best_iteration, time.time() - t0))
        clf.save_model("models/lgb_fold%d.txt" % (n_fold + 1))
        del clf, dtr, dva
        gc.collect()
    full = roc_auc_score(train_df[TARGET], oof)
    print("Full AUC score %.6f, logloss %.6f" % (full, log_loss(train_df[TARGET], oof)))
    stamp = datetime.now().strftime("%Y%m%d_%H%M%S")
    pd.DataFrame({"sk_id": train_df["sk_id"], "oof": oof}).to_csv("output/oof_lgb.csv", index=False)
    pd.DataFrame({"sk_id": test_df["sk_id"], TARGET: sub}).to_csv(
        "output/submission_{}_{:.5f}.csv".format(stamp, full), index=False)
    imp = pd.concat(importance)
    imp = imp.groupby("feature")["importance"].mean().sort_values(ascending=False)
    imp.to_csv("output/lgbm_importances.csv")
    print(imp.head(8).to_string(float_format="%.2f"))


def main():
    for d in ("models", "output"):
        os.makedirs(d, exist_ok=True)
    with timer("Process application"):
        df = add_features(application_table())
    with timer("Process bureau"):
        df = df.join(bureau_agg(bureau_table(df["sk_id"].values)), how="left", on="sk_id")
        print("df shape:", df.shape)
    df = reduce_mem_usage(df)
    with timer("Run LightGBM with kfold"):
        kfold_lightgbm(df)


if __name__ == "__main__":
    with timer("Full model run"):
        main()
