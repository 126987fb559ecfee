"""Demand forecast with CatBoost: feature engineering in polars, CatBoost's own training log and catboost_info.

Output follows CatBoost (https://github.com/catboost/catboost/issues/2241,
https://github.com/catboost/catboost/issues/1028): "0: learn: ... test: ... best: ... total: 2.1ms remaining: 1.2s",
catboost_info/ with time_left.tsv, learn_error.tsv and catboost_training.json.
"""
import contextlib
import json
import os
import platform
import sys
import time
from datetime import date, datetime, timedelta

import catboost
import numpy as np
import polars as pl
import psutil
from catboost import CatBoostRegressor, Pool

SHOPS = ["harbour", "market", "station", "village"]


@contextlib.contextmanager
def timer(title):
    """The notebook classic: elapsed seconds and memory at the end of each stage."""
    t0 = time.time()
    proc = psutil.Process(os.getpid())
    m0 = proc.memory_info().rss / 2.0 ** 30
    yield
    m1 = proc.memory_info().rss / 2.0 ** 30
    delta = m1 - m0
    print(f"[{m1:.1f}GB({'+' if delta >= 0 else '-'}{abs(delta):.3f}GB):{time.time() - t0:.3f}sec] {title} ", file=sys.stderr)


def make_sales(seed=12):
    rng = np.random.default_rng(seed)
    d0 = date(2022, 1, 1)
    rows = []
    for si, shop in enumerate(SHOPS):
        for item in range(12):
            base, trend = rng.uniform(5, 40), rng.normal(0, 0.01)
            for d in range(240):
                day = d0 + timedelta(days=d)
                price = round(float(rng.uniform(2, 9)), 2)
                mean = base * (1 + 0.4 * np.sin(2 * np.pi * (d % 7) / 7 + si)) * np.exp(trend * d / 10) * (1.4 - price / 12)
                rows.append((shop, f"item{item:02d}", day, price, int(rng.poisson(max(mean, 0.1)))))
    return pl.DataFrame(rows, schema=["shop", "item", "day", "price", "units"], orient="row")


def features(df):
    df = df.sort(["shop", "item", "day"])
    g = ["shop", "item"]
    return df.with_columns(
        pl.col("day").dt.weekday().alias("weekday"), pl.col("day").dt.ordinal_day().alias("yday"),
        *[pl.col("units").shift(k).over(g).alias(f"lag{k}") for k in (1, 7, 14)],
        pl.col("units").shift(1).rolling_mean(7).over(g).alias("mean7"),
    ).drop_nulls()


def train(tr, te, cols, loss, seed):
    cat = [c for c in cols if c in ("shop", "item")]

    def pool(d):
        return Pool(d.select(cols).to_pandas(), label=d["units"].to_numpy(), cat_features=cat)
    ptr, pte = pool(tr), pool(te)
    model = CatBoostRegressor(iterations=150, learning_rate=0.12, depth=5, loss_function=loss, eval_metric="RMSE", random_seed=seed,
                              thread_count=1, train_dir=os.path.join("catboost_info", loss.split(":")[0]), verbose=10)
    t = time.perf_counter()
    model.fit(ptr, eval_set=pte)
    dt = time.perf_counter() - t
    pred = model.predict(pte)
    return model, pred, dt, ptr


def main():
    started = datetime.now()
    print(f"catboost {catboost.__version__}, polars {pl.__version__}, python {platform.python_version()} on {platform.node()}")
    print(f"run {started:%Y-%m-%d %H:%M:%S.%f} pid={os.getpid()} load={os.getloadavg()[0]:.2f} "
          f"available={psutil.virtual_memory().available / 2 ** 30:.1f}GB")
    with timer("make sales"):
        df = make_sales()
    with timer("features"):
        fe = features(df)
        print(fe.shape, fe["units"].sum())
    with timer("split"):
        cut = date(2022, 7, 20)
        tr, te = fe.filter(pl.col("day") < cut), fe.filter(pl.col("day") >= cut)
    cols = [c for c in fe.columns if c not in ("units", "day")]
    scores, out = [], te.select(["shop", "item", "day", "units"])
    os.makedirs("catboost_info", exist_ok=True)
    for i, loss in enumerate(["RMSE", "Poisson"]):
        with timer(f"catboost {loss}"):
            model, pred, dt, ptr = train(tr, te, cols, loss, 100 + i)
        y = te["units"].to_numpy()
        rmse, mae = float(np.sqrt(((pred - y) ** 2).mean())), float(np.abs(pred - y).mean())
        print(f"{loss:<8} rmse {rmse:.5f} mae {mae:.5f} trees {model.tree_count_} fit {dt:.2f}s ({len(tr) * 150 / dt:.3g} rows*trees/s)")
        imp = model.get_feature_importance(ptr)
        for k in np.argsort(-imp, kind="stable")[:4]:
            print(f"    {cols[k]:<8} {imp[k]:.4f}")
        scores.append({"loss": loss, "rmse": rmse, "mae": mae, "fit_time": dt, "finished": datetime.now().isoformat()})
        out = out.with_columns(pl.Series(f"pred_{loss.lower()}", np.round(pred, 6)))
    best = min(scores, key=lambda s: s["rmse"])
    folder = f"forecast_{started:%Y%m%d_%H%M}"
    os.makedirs(folder)
    out.write_parquet(os.path.join(folder, "forecast.parquet"))
    with open(os.path.join(folder, "scores.json"), "w") as f:
        json.dump({"scores": scores, "best": best["loss"], "elapsed": (datetime.now() - started).total_seconds()}, f, indent=1)
    week = out.group_by("shop").agg(pl.col("units").sum(), pl.col(f"pred_{best['loss'].lower()}").sum().round(3)).sort("shop")
    for r in week.iter_rows():
        print("%-8s sold %6d forecast %10.3f" % r)
    print(f"Best: {best['loss']}; all done in {(datetime.now() - started).total_seconds():.1f}s")


if __name__ == "__main__":
    main()
