"""CatBoost flight-delay regression: time-based split, categorical features, feature importances, SHAP."""
import json
import time
from datetime import datetime
from pathlib import Path

import catboost
import numpy as np
import pandas as pd
from catboost import CatBoostRegressor, Pool
from sklearn.metrics import mean_absolute_error, root_mean_squared_error

SEED = 17
OUT = Path("catboost_run")


def log(msg):
    print(f"{datetime.now().strftime('%Y-%m-%d %H:%M:%S')} {msg}", flush=True)


def make_flights(n=6000):
    rng = np.random.default_rng(SEED)
    carriers = ["AA", "BA", "LH", "KL", "AF", "IB"]
    airports = ["AMS", "CDG", "FRA", "LHR", "MAD", "FCO", "VIE", "ZRH"]
    df = pd.DataFrame({
        "date": pd.Timestamp("2023-01-01") + pd.to_timedelta(np.sort(rng.integers(0, 365, n)), unit="D"),
        "carrier": rng.choice(carriers, n),
        "origin": rng.choice(airports, n),
        "dest": rng.choice(airports, n),
        "dep_hour": rng.integers(5, 23, n),
        "distance": rng.gamma(4, 300, n).round(),
        "aircraft_age": rng.integers(0, 25, n),
        "wind": rng.weibull(2, n) * 15,
        "visibility": np.where(rng.random(n) < 0.1, np.nan, rng.uniform(1, 10, n)),
    })
    df = df[df["origin"] != df["dest"]].reset_index(drop=True)
    eff = dict(zip(carriers, rng.normal(0, 4, len(carriers))))
    hub = dict(zip(airports, rng.normal(0, 3, len(airports))))
    df["delay"] = (5 + df["carrier"].map(eff) + df["origin"].map(hub) + 0.8 * (df["dep_hour"] - 5).clip(lower=0) ** 0.9
                   + 0.3 * df["wind"] + np.where(df["visibility"] < 3, 6, 0) + rng.gumbel(0, 6, len(df))).round(1)
    return df


def features(df):
    df = df.copy()
    df["dow"] = df["date"].dt.dayofweek
    df["month"] = df["date"].dt.month
    df["route"] = df["origin"] + "-" + df["dest"]
    prev = df.groupby("route")["delay"].shift(1)
    df["route_prev_delay"] = prev.groupby(df["route"]).transform(lambda s: s.rolling(5, min_periods=1).mean())
    df["traffic"] = df.groupby(["date", "origin"])["dest"].transform("count")
    return df


CAT = ["carrier", "origin", "dest", "route"]
NUM = ["dep_hour", "distance", "aircraft_age", "wind", "visibility", "dow", "month", "route_prev_delay", "traffic"]


def main():
    OUT.mkdir(exist_ok=True)
    t_all = time.time()
    log(f"catboost {catboost.__version__}")
    df = features(make_flights())
    train = df[df["date"] < "2023-09-01"]
    valid = df[(df["date"] >= "2023-09-01") & (df["date"] < "2023-11-01")]
    test = df[df["date"] >= "2023-11-01"]
    log(f"rows: train {len(train)}, valid {len(valid)}, test {len(test)}")
    pools = {k: Pool(d[CAT + NUM], d["delay"], cat_features=CAT)
             for k, d in (("train", train), ("valid", valid), ("test", test))}

    results, best = [], None
    for depth in (4, 6):
        t0 = time.time()
        model = CatBoostRegressor(iterations=120, learning_rate=0.1, depth=depth, loss_function="RMSE",
                                  eval_metric="RMSE", custom_metric=["MAE"], random_seed=SEED, l2_leaf_reg=4,
                                  od_type="Iter", od_wait=25, thread_count=1, train_dir=str(OUT / f"catboost_info_d{depth}"))
        model.fit(pools["train"], eval_set=pools["valid"], verbose=20)
        score = model.get_best_score()["validation"]
        log(f"depth={depth}: best iter {model.get_best_iteration()}, valid RMSE {score['RMSE']:.6f}, "
            f"MAE {score['MAE']:.6f} ({time.time() - t0:.1f} s)")
        results.append({"depth": depth, "best_iteration": model.get_best_iteration(), "valid_rmse": score["RMSE"],
                        "valid_mae": score["MAE"], "fit_time": time.time() - t0})
        if best is None or score["RMSE"] < best[0]:
            best = (score["RMSE"], depth, model)

    _, depth, model = best
    pred = model.predict(pools["test"])
    base = np.full(len(test), train["delay"].mean())
    metrics = {"depth": depth, "test_rmse": float(root_mean_squared_error(test["delay"], pred)),
               "test_mae": float(mean_absolute_error(test["delay"], pred)),
               "baseline_rmse": float(root_mean_squared_error(test["delay"], base))}
    log(f"test: {metrics}")
    imp = model.get_feature_importance(pools["train"], prettified=True)
    print(imp.to_string(index=False))
    shap = model.get_feature_importance(pools["test"], type="ShapValues")
    pd.DataFrame({"feature": CAT + NUM, "mean_abs_shap": np.abs(shap[:, :-1]).mean(0)}).to_csv(
        OUT / "shap.csv", index=False)
    by_carrier = (test.assign(pred=pred, err=lambda d: (d["pred"] - d["delay"]).abs())
                  .groupby("carrier").agg(n=("err", "size"), mae=("err", "mean"), bias=("pred", "mean")))
    by_carrier.to_csv(OUT / "by_carrier.csv")
    print(by_carrier.round(4).to_string())
    pd.DataFrame({"date": test["date"], "route": test["route"], "delay": test["delay"], "pred": pred}).to_csv(
        OUT / "predictions.csv", index=False)
    pd.DataFrame(results).to_csv(OUT / "search.csv", index=False)
    model.save_model(str(OUT / "model.cbm"))
    with open(OUT / "metrics.json", "w") as f:
        json.dump({**metrics, "trained_on": datetime.now().strftime("%Y-%m-%d %H:%M"),
                   "total_time": round(time.time() - t_all, 2)}, f, indent=2)
    log(f"finished in {time.time() - t_all:.1f} s")


if __name__ == "__main__":
    main()
