"""A tabular competition: CatBoost and XGBoost by folds, out of fold blend and submission.

Modelled on: catboost/catboost (catboost_info/ with time_left.tsv, learn_error.tsv, catboost_training.json;
"total: ..ms remaining: ..ms" lines) and the usual Kaggle kernels with a timer context manager.
"""
import gc
import json
import os
import time
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import xgboost as xgb
from catboost import CatBoostRegressor, Pool
from sklearn.metrics import mean_absolute_error, root_mean_squared_error
from sklearn.model_selection import KFold

SEED = 4242
FOLDS = 3


@contextmanager
def timer(title):
    t0 = time.time()
    p = psutil.Process(os.getpid())
    m0 = p.memory_info().rss / 2.0 ** 20
    yield
    delta = p.memory_info().rss / 2.0 ** 20 - m0
    print(f"[{p.memory_info().rss / 2.0 ** 20:.1f}MB({'+' if delta >= 0 else '-'}{abs(delta):.1f}MB):{time.time() - t0:.1f}sec] {title}", flush=True)


def make(n, seed):
    rng = np.random.default_rng(seed)
    df = pd.DataFrame({
        "id": np.arange(n),
        "area": np.round(rng.gamma(6, 18, n), 1),
        "rooms": rng.integers(1, 7, n),
        "year": rng.integers(1900, 2023, n),
        "city": rng.choice(["Gent", "Leuven", "Brugge", "Namur", "Liege"], n, p=[0.3, 0.2, 0.2, 0.1, 0.2]),
        "energy": rng.choice(list("ABCDEF"), n),
        "distance": np.round(rng.exponential(4, n), 2),
    })
    city = df.city.map({"Gent": 1.15, "Leuven": 1.25, "Brugge": 1.05, "Namur": 0.9, "Liege": 0.8})
    energy = df.energy.map({c: 1.1 - 0.04 * i for i, c in enumerate("ABCDEF")})
    price = (60 + 1.9 * df.area + 9 * df.rooms) * city * energy * np.exp(-df.distance / 60) * (1 + (df.year - 1960) / 900)
    df["price"] = np.round(price * rng.lognormal(0, 0.12, n), 2)
    return df


def features(df):
    out = df.drop(columns=["id", "price"]).copy()
    out["age"] = 2024 - out.pop("year")
    out["area_room"] = out.area / out.rooms
    out["log_area"] = np.log1p(out.area)
    return out


def encode(train, valid, test, y):
    """Target means by category with smoothing, from the training part only."""
    prior = y.mean()
    tabs = []
    for c in ("city", "energy"):
        g = y.groupby(train[c]).agg(["sum", "size"])
        tabs.append((c, (g["sum"] + 20 * prior) / (g["size"] + 20)))
    res = []
    for d in (train, valid, test):
        d = d.copy()
        for c, t in tabs:
            d[c] = d[c].map(t).astype(float)
        res.append(d)
    return res


def main():
    start = time.time()
    print(f"run of {datetime.now():%Y-%m-%d %H:%M}, pid {os.getpid()}, catboost and xgboost {xgb.__version__}")
    with timer("make data"):
        train, test = make(1500, SEED), make(500, SEED + 1)
    with timer("features"):
        x, xt, y = features(train), features(test), np.log(train.price)
    oof = {"cat": np.zeros(len(x)), "xgb": np.zeros(len(x))}
    pred = {"cat": np.zeros(len(xt)), "xgb": np.zeros(len(xt))}
    imp = np.zeros(x.shape[1])
    fold_rows = []
    for k, (tr, va) in enumerate(KFold(FOLDS, shuffle=True, random_state=SEED).split(x)):
        t = time.time()
        with timer(f"catboost fold {k}"):
            model = CatBoostRegressor(iterations=60, depth=5, learning_rate=0.15, random_seed=SEED, thread_count=1, loss_function="RMSE")
            cats = ["city", "energy"]
            model.fit(Pool(x.iloc[tr], y.iloc[tr], cats), eval_set=Pool(x.iloc[va], y.iloc[va], cats), verbose=20)
            oof["cat"][va] = model.predict(x.iloc[va])
            pred["cat"] += model.predict(xt) / FOLDS
            imp += model.get_feature_importance() / FOLDS
        tc = time.time() - t
        t = time.time()
        with timer(f"xgboost fold {k}"):
            a, b, c = encode(x.iloc[tr], x.iloc[va], xt, y.iloc[tr])
            booster = xgb.train({"max_depth": 5, "eta": 0.15, "seed": SEED, "nthread": 1, "subsample": 0.8, "tree_method": "hist"},
                                xgb.DMatrix(a, y.iloc[tr]), 60, evals=[(xgb.DMatrix(b, y.iloc[va]), "valid")], verbose_eval=20)
            oof["xgb"][va] = booster.predict(xgb.DMatrix(b))
            pred["xgb"] += booster.predict(xgb.DMatrix(c)) / FOLDS
        row = {"fold": k, "rmse_cat": root_mean_squared_error(y.iloc[va], oof["cat"][va]), "rmse_xgb": root_mean_squared_error(y.iloc[va], oof["xgb"][va]),
               "fit_time_cat": tc, "fit_time_xgb": time.time() - t}
        fold_rows.append(row)
        print(f"fold {k}: catboost {row['rmse_cat']:.6f} in {tc:.2f}s, xgboost {row['rmse_xgb']:.6f} in {row['fit_time_xgb']:.2f}s")
        gc.collect()
    grid = np.linspace(0, 1, 21)
    scores = [root_mean_squared_error(y, w * oof["cat"] + (1 - w) * oof["xgb"]) for w in grid]
    w = float(grid[int(np.argmin(scores))])
    blend = w * pred["cat"] + (1 - w) * pred["xgb"]
    mae = mean_absolute_error(train.price, np.exp(w * oof["cat"] + (1 - w) * oof["xgb"]))
    print(f"CV: cat {root_mean_squared_error(y, oof['cat']):.6f}, xgb {root_mean_squared_error(y, oof['xgb']):.6f}, blend {min(scores):.6f} at weight {w:.2f}, MAE {mae:.4f}")
    for n, v in sorted(zip(x.columns, imp), key=lambda p: -p[1]):
        print(f"   {n:10s} {v:8.4f}")
    pd.DataFrame(fold_rows).to_csv("folds.csv", index=False)
    pd.DataFrame({"id": train.id, "y": y, **oof}).to_parquet("oof.parquet", index=False)
    pd.DataFrame({"id": test.id, "price": np.round(np.exp(blend), 4)}).to_csv("submission.csv", index=False)
    history = Path("experiments.jsonl")
    with history.open("a") as f:
        f.write(json.dumps({"time": datetime.now().isoformat(), "cv": min(scores), "weight": w, "mae": mae, "seconds": round(time.time() - start, 1)}) + "\n")
    print(f"Full run took {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
