# Kaggle-style tabular blend: LightGBM + XGBoost + CatBoost, stratified folds, OOF, submission.
import gc
import json
import os
import random
import time
import warnings
from contextlib import contextmanager
from datetime import datetime

import catboost as cb
import lightgbm as lgb
import numpy as np
import pandas as pd
import psutil
import xgboost as xgb
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from tqdm import tqdm

warnings.filterwarnings("ignore")


class CFG:
    VERSION = 7
    SEED = 2024
    N_FOLDS = 3
    TARGET = "default"
    ID = "loan_id"
    N_TRAIN, N_TEST = 2400, 800
    WEIGHTS = {"lgb": 0.4, "xgb": 0.35, "cat": 0.25}


@contextmanager
def timer(title):
    t0 = time.time()
    p = psutil.Process(os.getpid())
    m0 = p.memory_info().rss / 2.0 ** 30
    yield
    m1 = p.memory_info().rss / 2.0 ** 30
    delta = m1 - m0
    sign = "+" if delta >= 0 else "-"
    print(f"[{m1:.1f}GB({sign}{abs(delta):.3f}GB): {time.time() - t0:.3f}sec] {title}")


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)


def reduce_mem_usage(df):
    start = df.memory_usage().sum() / 1024 ** 2
    for c in df.columns:
        if df[c].dtype == "int64":
            df[c] = pd.to_numeric(df[c], downcast="integer")
        elif df[c].dtype == "float64":
            df[c] = df[c].astype("float32")
    end = df.memory_usage().sum() / 1024 ** 2
    print(f"Mem. usage decreased to {end:5.2f} Mb ({100 * (start - end) / start:.1f}% reduction)")
    return df


def load():
    rng = np.random.default_rng(CFG.SEED)
    n = CFG.N_TRAIN + CFG.N_TEST
    df = pd.DataFrame({CFG.ID: np.arange(n) + 5_000_000})
    df["amount"] = rng.lognormal(9, 0.6, n)
    df["income"] = rng.lognormal(10.4, 0.5, n)
    df["age"] = rng.integers(19, 75, n)
    df["n_prev"] = rng.poisson(2, n)
    df["late_12m"] = rng.poisson(0.5, n)
    df["purpose"] = rng.integers(0, 7, n)
    df["region"] = rng.integers(0, 12, n)
    for i in range(6):
        df[f"ext_{i}"] = rng.normal(0, 1, n)
    reg = rng.normal(0, 0.5, 12)
    z = (-1.6 + 1.1 * np.log(df.amount / df.income * 4) + 0.8 * df.late_12m - 0.02 * (df.age - 40)
         + 0.6 * df.ext_0 * (df.ext_1 > 0) - 0.5 * df.ext_2 + reg[df.region])
    df[CFG.TARGET] = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    return df.iloc[:CFG.N_TRAIN].copy(), df.iloc[CFG.N_TRAIN:].drop(columns=CFG.TARGET).copy()


def feature_engineering(tr, te):
    both = pd.concat([tr, te], ignore_index=True)
    both["dti"] = both.amount / both.income
    both["log_amount"] = np.log1p(both.amount)
    for c in ("purpose", "region"):
        g = both.groupby(c).dti
        both[f"dti_mean_{c}"] = g.transform("mean")
        both[f"dti_rank_{c}"] = g.rank(pct=True)
    both["ext_mean"] = both[[f"ext_{i}" for i in range(6)]].mean(axis=1)
    both = reduce_mem_usage(both)
    return both.iloc[:len(tr)].copy(), both.iloc[len(tr):].drop(columns=CFG.TARGET).copy()


def fit_lgb(Xt, yt, Xv, yv, fold):
    params = dict(objective="binary", metric="auc", learning_rate=0.08, num_leaves=15, min_child_samples=20,
                  feature_fraction=0.8, bagging_fraction=0.8, bagging_freq=1, seed=CFG.SEED + fold, num_threads=1,
                  deterministic=True, force_row_wise=True, verbose=-1)
    m = lgb.train(params, lgb.Dataset(Xt, yt), 80, valid_sets=[lgb.Dataset(Xv, yv)],
                  callbacks=[lgb.log_evaluation(40), lgb.early_stopping(25, verbose=False)])
    return m, (lambda X: m.predict(X, num_iteration=m.best_iteration)), dict(zip(Xt.columns, m.feature_importance("gain")))


def fit_xgb(Xt, yt, Xv, yv, fold):
    params = dict(objective="binary:logistic", eval_metric="auc", eta=0.1, max_depth=4, subsample=0.8,
                  colsample_bytree=0.8, seed=CFG.SEED + fold, nthread=1, tree_method="hist")
    m = xgb.train(params, xgb.DMatrix(Xt, yt), 70, evals=[(xgb.DMatrix(Xv, yv), "valid")], verbose_eval=35)
    return m, (lambda X: m.predict(xgb.DMatrix(X))), m.get_score(importance_type="gain")


def fit_cat(Xt, yt, Xv, yv, fold):
    m = cb.CatBoostClassifier(iterations=60, learning_rate=0.12, depth=4, eval_metric="AUC", random_seed=CFG.SEED + fold,
                              thread_count=1, verbose=30, train_dir="catboost_info", bootstrap_type="Bernoulli", subsample=0.8)
    m.fit(Xt, yt, eval_set=(Xv, yv))
    return m, (lambda X: m.predict_proba(X)[:, 1]), dict(zip(Xt.columns, m.get_feature_importance()))


def main():
    seed_everything(CFG.SEED)
    start = time.time()
    print(f"notebook v{CFG.VERSION} started {datetime.now():%A %d %B %Y %H:%M:%S}")
    os.makedirs("models", exist_ok=True)
    with timer("load data"):
        train, test = load()
        print(train.shape, test.shape, "target mean %.4f" % train[CFG.TARGET].mean())
    with timer("feature engineering"):
        train, test = feature_engineering(train, test)
    feats = [c for c in train.columns if c not in (CFG.ID, CFG.TARGET)]
    X, y, XT = train[feats], train[CFG.TARGET].astype(int), test[feats]
    oof = {k: np.zeros(len(X)) for k in CFG.WEIGHTS}
    pred = {k: np.zeros(len(XT)) for k in CFG.WEIGHTS}
    imps, log = [], []
    folds = StratifiedKFold(CFG.N_FOLDS, shuffle=True, random_state=CFG.SEED)
    for fold, (tr, va) in enumerate(tqdm(list(folds.split(X, y)), desc="folds")):
        print(f"{'=' * 20} fold {fold} {'=' * 20}")
        for name, fn in (("lgb", fit_lgb), ("xgb", fit_xgb), ("cat", fit_cat)):
            t = time.time()
            with timer(f"{name} fold {fold}"):
                m, predict, imp = fn(X.iloc[tr], y.iloc[tr], X.iloc[va], y.iloc[va], fold)
                oof[name][va] = predict(X.iloc[va])
                pred[name] += predict(XT) / CFG.N_FOLDS
            auc = roc_auc_score(y.iloc[va], oof[name][va])
            log.append({"fold": fold, "model": name, "auc": auc, "train_time": time.time() - t})
            imps += [{"model": name, "fold": fold, "feature": k, "gain": float(v)} for k, v in imp.items()]
            print(f"fold {fold} {name} AUC: {auc:.6f}")
            if name == "lgb":
                m.save_model(f"models/lgb_f{fold}.txt")
            elif name == "xgb":
                m.save_model(f"models/xgb_f{fold}.json")
            gc.collect()
    pd.DataFrame(log).to_csv("fold_log.csv", index=False)
    blend_oof = sum(w * oof[k] for k, w in CFG.WEIGHTS.items())
    blend = sum(w * pred[k] for k, w in CFG.WEIGHTS.items())
    print("-" * 50)
    scores = {k: roc_auc_score(y, v) for k, v in oof.items()}
    for k, s in scores.items():
        print(f"OOF {k}: {s:.6f}")
    cv = roc_auc_score(y, blend_oof)
    print(f"OOF blend AUC: {cv:.6f} logloss: {log_loss(y, blend_oof):.6f}")
    imp = pd.DataFrame(imps).groupby(["model", "feature"]).gain.mean().reset_index()
    imp.sort_values(["model", "gain", "feature"], ascending=[True, False, True]).to_csv("feature_importance.csv", index=False)
    pd.DataFrame({CFG.ID: train[CFG.ID], **oof, "blend": blend_oof}).to_parquet("oof.parquet", index=False)
    stamp = datetime.now().strftime("%m%d_%H%M")
    pd.DataFrame({CFG.ID: test[CFG.ID], CFG.TARGET: blend}).to_csv(f"submission_{stamp}_cv{cv:.5f}.csv", index=False)
    with open("run.json", "w") as f:
        json.dump({"cv": cv, **scores, "version": CFG.VERSION, "total_minutes": (time.time() - start) / 60,
                   "peak_rss_gb": psutil.Process().memory_info().rss / 2 ** 30}, f)
    print(f"Total time: {time.time() - start:.1f} sec")


if __name__ == "__main__":
    main()
