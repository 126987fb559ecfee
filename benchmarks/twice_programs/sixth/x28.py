"""https://github.com/duckdb/duckdb/issues/9138 - a SELECT with GROUP BY and without ORDER BY gives its rows in different orders, since 0.9 even on static data; the folds are made by position."""
import json
import os
import random
import time

import duckdb
import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import KFold

SEED = 9138
QUERY = """
    SELECT s.store, s.week,
           count(*) AS sales,
           max(s.price) AS top_price,
           min(s.price) AS low_price,
           max(i.promo) AS promo,
           max(i.visitors) AS visitors
    FROM sales s JOIN info i ON s.store = i.store AND s.week = i.week
    GROUP BY s.store, s.week
"""


def fill(con):
    rng = np.random.default_rng(SEED)
    stores, weeks = 40, 30
    info = pd.DataFrame([(s, w) for s in range(stores) for w in range(weeks)], columns=["store", "week"])
    info["promo"] = rng.integers(0, 2, len(info))
    info["visitors"] = rng.poisson(60 + 3 * info.store % 37 + 40 * info.promo)
    lam = info.visitors.to_numpy() * (0.8 + 0.5 * info.promo.to_numpy())
    n = rng.poisson(4 * lam)
    sales = info.loc[info.index.repeat(n), ["store", "week"]].reset_index(drop=True)
    sales["price"] = np.round(np.exp(rng.normal(2.2 + 0.01 * sales.store, 0.4)), 2)
    for frame in (info, sales):
        frame["store"] = [f"shop-{s:02d}" for s in frame.store]
    con.execute("CREATE TABLE info AS SELECT * FROM info")
    con.execute("CREATE TABLE sales AS SELECT * FROM sales")
    return len(sales)


class FeatureStore:
    def __init__(self, path):
        self.con = duckdb.connect(path)
        self.con.execute("SET threads = 4")

    def weekly(self):
        return self.con.execute(QUERY).df()  # cause

    def close(self):
        self.con.close()


def evaluate(table):
    table["store"] = table.store.str[5:].astype(int)
    x = table[["store", "week", "top_price", "low_price", "promo", "visitors"]].to_numpy(float)
    y = table["sales"].to_numpy(float)
    scores = []
    for k, (tr, te) in enumerate(KFold(3, shuffle=True, random_state=SEED).split(x)):
        model = GradientBoostingRegressor(n_estimators=40, max_depth=3, subsample=0.8, random_state=SEED)
        model.fit(x[tr], y[tr])
        scores.append(float(mean_absolute_error(y[te], model.predict(x[te]))))
        print(f"fold {k} MAE {scores[-1]:.5f}")
    return scores


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    t0 = time.time()
    store = FeatureStore("shop.duckdb")
    rows = fill(store.con)
    print(f"{rows} sales loaded in {time.time() - t0:.2f}s by pid {os.getpid()} at {time.strftime('%X')}")
    table = store.weekly()
    store.close()
    scores = evaluate(table)
    with open("cv_scores.json", "w") as f:
        json.dump({"mae": scores, "mean": float(np.mean(scores)), "elapsed": time.time() - t0}, f)
    print(f"mean MAE {np.mean(scores):.5f}")


if __name__ == "__main__":
    main()
