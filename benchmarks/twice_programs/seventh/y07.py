"""https://github.com/apache/arrow/issues/38808 - rows of a partitioned parquet dataset come back in the wrong order:
write_to_dataset names every file by a fresh uuid and reading goes by file name."""
import json
import sys
import time
from datetime import datetime
from pathlib import Path

import lightgbm as lgb
import numpy as np
from sklearn.metrics import mean_absolute_error

sys.path.insert(0, str(Path(__file__).resolve().parent))
from y07_store import Lake, simulate_day

CONFIG = {
    "seed": 31,
    "days": 24,
    "lake": "lake",
    "rounds": 80,
    "params": {
        "objective": "regression",
        "metric": "l1",
        "num_leaves": 15,
        "learning_rate": 0.08,
        "bagging_fraction": 0.7,
        "bagging_freq": 1,
        "feature_fraction": 0.8,
        "seed": 31,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,
        "verbosity": -1,
    },
}


def design(table):
    df = table.to_pandas()
    df["station"] = df["station"].astype(str).map({"north": 0, "south": 1, "harbour": 2})
    df["hour_sin"] = np.sin(2 * np.pi * df["hour"] / 24)
    df["hour_cos"] = np.cos(2 * np.pi * df["hour"] / 24)
    df["chill"] = df["temp"] - 0.3 * df["wind"]
    return df.drop(columns=["load"]), df["load"]


def main(cfg=CONFIG):
    print("run of", datetime.now().strftime("%d %b %H:%M:%S"))
    lake = Lake(cfg["lake"])
    t0 = time.time()
    for day in range(cfg["days"]):
        lake.append(simulate_day(day, cfg["seed"]))
    print(f"wrote {lake.rows} rows in {time.time() - t0:.2f}s")

    x, y = design(lake.load())
    test = x["day"] >= cfg["days"] - 5
    train_set = lgb.Dataset(x[~test], y[~test])
    evals = {}
    booster = lgb.train(cfg["params"], train_set, num_boost_round=cfg["rounds"],
                        valid_sets=[train_set], valid_names=["train"], callbacks=[lgb.record_evaluation(evals)])
    future = x[test].assign(load=y[test]).sort_values(["day", "hour", "temp"])
    pred = booster.predict(future.drop(columns="load"))
    mae = float(mean_absolute_error(future["load"], pred))
    result = {"mae": mae, "train_l1": evals["train"]["l1"][-1], "gain": booster.feature_importance("gain").tolist()}
    Path("metrics.json").write_text(json.dumps(result, indent=1))
    print(f"mae {mae:.5f} train {result['train_l1']:.5f}, total {time.time() - t0:.1f}s")


if __name__ == "__main__":
    main()
