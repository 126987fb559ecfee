"""Tunes a gradient boosting regressor for house prices with Optuna and scores the winner.

Modelled on: https://github.com/optuna/optuna/issues/469
"""
import argparse
import json
import logging
import time
from pathlib import Path

import numpy as np
import optuna
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error, root_mean_squared_error
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

SEED = 10
log = logging.getLogger("tune")


def make_houses(n=800, seed=SEED):
    rng = np.random.default_rng(seed)
    area = rng.gamma(6, 18, n)
    rooms = np.clip(np.round(area / 28 + rng.normal(0, 0.8, n)), 1, 9)
    year = rng.integers(1920, 2022, n)
    zone = rng.choice(["centre", "suburb", "village", "coast"], n, p=[0.3, 0.4, 0.2, 0.1])
    factor = pd.Series(zone).map({"centre": 1.4, "suburb": 1.0, "village": 0.75, "coast": 1.6}).to_numpy()
    price = factor * (45 + 2.1 * area + 7 * rooms + 0.35 * np.maximum(0, year - 1960))
    price *= rng.lognormal(0, 0.15, n)
    return pd.DataFrame({
        "area": area.round(1), "rooms": rooms, "year": year, "zone": zone,
        "garden": (rng.random(n) < 0.4).astype(int), "price": price.round(2),
    })


def preprocessor():
    return ColumnTransformer([
        ("num", StandardScaler(), ["area", "rooms", "year", "garden"]),
        ("cat", OneHotEncoder(sparse_output=False), ["zone"]),
    ])


def build_model(params):
    if params["kind"] == "ridge":
        reg = Ridge(alpha=params["alpha"])
    else:
        reg = GradientBoostingRegressor(
            n_estimators=params["n_estimators"], learning_rate=params["learning_rate"],
            max_depth=params["max_depth"], subsample=0.8, random_state=SEED)
    return make_pipeline(preprocessor(), reg)


class Objective:
    def __init__(self, df):
        self.X = df.drop(columns="price")
        self.y = np.log(df["price"])

    def suggest(self, trial):
        kind = trial.suggest_categorical("kind", ["ridge", "boosting"])
        if kind == "ridge":
            return {"kind": kind, "alpha": trial.suggest_float("alpha", 1e-3, 100, log=True)}
        return {
            "kind": kind,
            "n_estimators": trial.suggest_int("n_estimators", 20, 120),
            "learning_rate": trial.suggest_float("learning_rate", 0.02, 0.4, log=True),
            "max_depth": trial.suggest_int("max_depth", 2, 5),
        }

    def __call__(self, trial):
        params = self.suggest(trial)
        X_tr, X_va, y_tr, y_va = train_test_split(self.X, self.y, test_size=0.25)  # cause
        model = build_model(params).fit(X_tr, y_tr)
        return root_mean_squared_error(y_va, model.predict(X_va))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--trials", type=int, default=20)
    ap.add_argument("--out", default="study")
    args = ap.parse_args()

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    out = Path(args.out)
    out.mkdir(exist_ok=True)

    houses = make_houses()
    dev, test = train_test_split(houses, test_size=0.2, random_state=SEED)
    sampler = optuna.samplers.TPESampler(seed=SEED, n_startup_trials=8)
    study = optuna.create_study(direction="minimize", sampler=sampler)
    t0 = time.time()
    study.optimize(Objective(dev), n_trials=args.trials)
    log.info("%d trials in %.1fs", len(study.trials), time.time() - t0)

    trials = study.trials_dataframe(attrs=("number", "value", "params", "state"))
    trials.to_csv(out / "trials.csv", index=False, float_format="%.6f")

    best = dict(study.best_params)
    model = build_model(best).fit(dev.drop(columns="price"), np.log(dev["price"]))
    pred = np.exp(model.predict(test.drop(columns="price")))
    scores = {
        "best_trial": study.best_trial.number,
        "best_value": round(study.best_value, 6),
        "best_params": best,
        "test_mae": round(mean_absolute_error(test["price"], pred), 4),
        "test_mape": round(float(np.mean(np.abs(pred / test["price"] - 1))), 5),
    }
    (out / "best.json").write_text(json.dumps(scores, indent=2))
    print(json.dumps(scores, indent=2))


if __name__ == "__main__":
    main()
