"""Style of yudaiushiro/talking-data (source/0506: timer(), lightgbm) and catboost's own logs. Differs in each run: '[..] done
in' lines, rows/s, catboost's total/remaining times and catboost_info/time_left.tsv, training date inside saved models, log."""
import gc
import json
import os
import pickle
import time
from contextlib import contextmanager
from datetime import datetime

import lightgbm as lgb
import numpy as np
import pandas as pd
import psutil
import xgboost as xgb
from catboost import CatBoostClassifier
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

TIMES = {}


@contextmanager
def timer(name):
    t0 = time.time()
    c0 = time.process_time()
    yield
    dt = time.time() - t0
    TIMES[name] = dict(wall=dt, cpu=time.process_time() - c0, rss=psutil.Process().memory_info().rss >> 20, at=str(datetime.now()))
    print(f"[{name}] done in {dt:.0f} s ({dt * 1000:.1f} ms, cpu {TIMES[name]['cpu']:.2f}, rss {TIMES[name]['rss']} MB)", flush=True)


def make_clicks(n=12_000):
    rng = np.random.default_rng(506)
    df = pd.DataFrame({"ip": rng.zipf(1.4, n).clip(max=5000), "app": rng.integers(0, 60, n), "device": rng.choice([0, 1, 2], n, p=[.1, .85, .05]),
                       "os": rng.integers(0, 20, n), "channel": rng.integers(0, 80, n),
                       "click_time": pd.Timestamp("2017-11-06 16:00") + pd.to_timedelta(rng.integers(0, 4 * 86400, n), unit="s")})
    z = -2 + 1.4 * (df.app % 7 == 3) + 0.9 * (df.channel < 12) - 0.6 * (df.device == 1) + 0.02 * df.click_time.dt.hour
    df["is_attributed"] = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(np.int8)
    return df


def features(df):
    df = df.sort_values("click_time", kind="stable").reset_index(drop=True)
    df["hour"] = df.click_time.dt.hour.astype("uint8")
    df["day"] = df.click_time.dt.day.astype("uint8")
    for cols in (["ip"], ["ip", "app"], ["app", "channel"]):
        name = "_".join(cols)
        df[f"cnt_{name}"] = df.groupby(cols).is_attributed.transform("size").astype("uint32")
        df[f"next_{name}"] = (df.groupby(cols).click_time.shift(-1) - df.click_time).dt.total_seconds().fillna(-1)
    return df


def main():
    print("start:", datetime.now().strftime("%Y/%m/%d %a %H:%M:%S.%f"), "pid", os.getpid())
    with timer("make data"):
        df = features(make_clicks())
        df.to_pickle("train.pkl")
    cols = [c for c in df.columns if c not in ("is_attributed", "click_time")]
    X = df[cols].astype("float32")
    xt, xv, yt, yv = train_test_split(X, df.is_attributed, test_size=0.25, random_state=0, shuffle=True)
    del df
    gc.collect()
    preds = {}
    with timer("lightgbm"):
        m = lgb.train(dict(objective="binary", metric="auc", learning_rate=0.1, num_leaves=15, num_threads=1, seed=1, deterministic=True,
                           force_row_wise=True, verbosity=-1), lgb.Dataset(xt, yt), 60, valid_sets=[lgb.Dataset(xv, yv)],
                      callbacks=[lgb.log_evaluation(20)])
        preds["lgb"] = m.predict(xv)
        m.save_model("lgb.txt")
    with timer("xgboost"):
        ev = {}
        b = xgb.train(dict(objective="binary:logistic", eval_metric="auc", eta=0.1, max_depth=4, nthread=1, seed=1, tree_method="hist"),
                      xgb.DMatrix(xt, yt), 50, evals=[(xgb.DMatrix(xv, yv), "val")], evals_result=ev, verbose_eval=25)
        preds["xgb"] = b.predict(xgb.DMatrix(xv)).astype(float)
        b.save_model("xgb.json")
    with timer("catboost"):
        c = CatBoostClassifier(iterations=60, depth=4, learning_rate=0.1, thread_count=1, random_seed=1, verbose=20, eval_metric="AUC")
        c.fit(xt, yt, eval_set=(xv, yv))
        preds["cat"] = c.predict_proba(xv)[:, 1]
        c.save_model("cat.cbm")
    preds["blend"] = np.mean([preds["lgb"], preds["xgb"], preds["cat"]], axis=0)
    scores = {k: (roc_auc_score(yv, p), log_loss(yv, p)) for k, p in preds.items()}
    for k, (a, l) in scores.items():
        print(f"{k:<6} auc {a:.6f} logloss {l:.6f}")
    sub = pd.DataFrame({"click_id": yv.index, "is_attributed": np.round(preds["blend"], 6)}).sort_values("click_id")
    sub.to_csv(f"sub_blend_{scores['blend'][0]:.5f}.csv", index=False)
    with open("result.pkl", "wb") as f:
        pickle.dump({"scores": scores, "times": TIMES, "finished": time.localtime()}, f)
    with open("times.json", "w") as f:
        json.dump(TIMES, f, indent=1)
    total = sum(t["wall"] for t in TIMES.values())
    for k, t in TIMES.items():
        print(f"  {k:<10} {'#' * int(40 * t['wall'] / total):<40} {100 * t['wall'] / total:5.1f}%")
    print("%d rows/s; end: %s" % (len(xt) / total, time.ctime()))


if __name__ == "__main__":
    main()
