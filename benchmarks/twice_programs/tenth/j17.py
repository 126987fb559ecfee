"""Modelled on https://github.com/mindsdb/lightwood/issues/383

An AutoML-style job that infers column types, encodes a synthetic house table, tunes a LightGBM mixer and reports accuracy.
"""
import json
import logging
import random
import time
from dataclasses import dataclass, field

import lightgbm as lgb
import numpy as np
import optuna
import pandas as pd

optuna.logging.set_verbosity(optuna.logging.WARNING)
log = logging.getLogger("automl")


@dataclass
class JobConfig:
    target: str = "price"
    seed: int = 420
    rows: int = 1200
    trials: int = 12
    dev_fraction: float = 0.15
    test_fraction: float = 0.2
    max_rounds: int = 60
    base_params: dict = field(
        default_factory=lambda: {
            "objective": "regression",
            "metric": "l2",
            "verbosity": -1,
            "num_threads": 1,
            "deterministic": True,
            "force_row_wise": True,
        }
    )


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)


def load_data(cfg):
    rng = np.random.default_rng(cfg.seed)
    n = cfg.rows
    df = pd.DataFrame(
        {
            "rooms": rng.integers(1, 8, n),
            "sqft": rng.normal(900, 260, n).clip(250).round(1),
            "bathrooms": rng.integers(1, 4, n),
            "neighborhood": rng.choice(["alcatraz_ave", "berkeley_hills", "downtown", "south_side", "westbrae"], n),
            "location": rng.choice(["good", "great", "poor"], n),
            "days_on_market": rng.poisson(22, n),
            "built": pd.to_datetime("1950-01-01") + pd.to_timedelta(rng.integers(0, 25000, n), unit="D"),
            "agent_note": rng.choice(["quiet street", "needs work", "new kitchen", "corner lot", ""], n),
        }
    )
    hood = df["neighborhood"].map({"alcatraz_ave": 0, "berkeley_hills": 900, "downtown": 450, "south_side": -200, "westbrae": 150})
    loc = df["location"].map({"good": 0, "great": 400, "poor": -350})
    df["price"] = (
        800
        + 2.1 * df["sqft"]
        + 160 * df["bathrooms"]
        + 40 * df["rooms"]
        + hood
        + loc
        + 120 * (df["agent_note"] == "new kitchen")
        - 180 * (df["agent_note"] == "needs work")
        + 0.01 * (df["built"] - pd.Timestamp("1950-01-01")).dt.days
        + rng.normal(0, 180, n)
    ).round(2)
    return df


def infer_types(df, target):
    types = {}
    for col in df.columns:
        if col == target:
            types[col] = "target"
        elif pd.api.types.is_datetime64_any_dtype(df[col]):
            types[col] = "datetime"
        elif pd.api.types.is_numeric_dtype(df[col]):
            types[col] = "numeric"
        elif df[col].nunique() <= 10:
            types[col] = "categorical"
        else:
            types[col] = "text"
    return types


class Encoder:
    def __init__(self, types):
        self.types = types
        self.categories = {}
        self.stats = {}

    def fit(self, df):
        for col, kind in self.types.items():
            if kind == "categorical":
                self.categories[col] = sorted(df[col].unique())
            elif kind == "numeric":
                self.stats[col] = (float(df[col].mean()), float(df[col].std()) or 1.0)
        return self

    def transform(self, df):
        parts, names = [], []
        for col, kind in self.types.items():
            if kind == "numeric":
                m, s = self.stats[col]
                parts.append(((df[col] - m) / s).to_numpy()[:, None])
                names.append(col)
            elif kind == "categorical":
                for value in self.categories[col]:
                    parts.append((df[col] == value).to_numpy(dtype=float)[:, None])
                    names.append(f"{col}={value}")
            elif kind == "datetime":
                parts.append(df[col].dt.year.to_numpy(dtype=float)[:, None])
                parts.append(df[col].dt.month.to_numpy(dtype=float)[:, None])
                names += [f"{col}.year", f"{col}.month"]
        return np.hstack(parts), names


class LightGBMMixer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.params = dict(cfg.base_params, seed=cfg.seed)
        self.model = None

    def _train(self, params, x, y, xd, yd):
        train = lgb.Dataset(x, y, free_raw_data=False)
        dev = lgb.Dataset(xd, yd, reference=train, free_raw_data=False)
        return lgb.train(
            params,
            train,
            num_boost_round=self.cfg.max_rounds,
            valid_sets=[dev],
            callbacks=[lgb.early_stopping(10, verbose=False)],
        )

    def _objective(self, trial, x, y, xd, yd):
        params = dict(
            self.params,
            learning_rate=trial.suggest_float("learning_rate", 0.02, 0.3, log=True),
            num_leaves=trial.suggest_int("num_leaves", 4, 48),
            feature_fraction=trial.suggest_float("feature_fraction", 0.4, 1.0),
            bagging_fraction=trial.suggest_float("bagging_fraction", 0.4, 1.0),
            bagging_freq=trial.suggest_int("bagging_freq", 1, 7),
            min_child_samples=trial.suggest_int("min_child_samples", 5, 60),
        )
        model = self._train(params, x, y, xd, yd)
        return model.best_score["valid_0"]["l2"]

    def fit(self, x, y, xd, yd):
        study = optuna.create_study(direction="minimize")  # cause
        study.optimize(lambda t: self._objective(t, x, y, xd, yd), n_trials=self.cfg.trials)
        self.params.update(study.best_params)
        self.model = self._train(self.params, x, y, xd, yd)
        return study

    def predict(self, x):
        return self.model.predict(x, num_iteration=self.model.best_iteration)


def metrics(y, p):
    err = y - p
    return {
        "mae": float(np.abs(err).mean()),
        "rmse": float(np.sqrt((err**2).mean())),
        "r2": float(1 - (err**2).sum() / ((y - y.mean()) ** 2).sum()),
    }


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    cfg = JobConfig()
    seed_everything(cfg.seed)
    df = load_data(cfg)
    types = infer_types(df, cfg.target)
    log.info("inferred types: %s", types)
    order = np.random.permutation(len(df))
    n_test, n_dev = int(len(df) * cfg.test_fraction), int(len(df) * cfg.dev_fraction)
    test = df.iloc[order[:n_test]]
    dev = df.iloc[order[n_test : n_test + n_dev]]
    train = df.iloc[order[n_test + n_dev :]]

    enc = Encoder(types).fit(train)
    (x, names), (xd, _), (xt, _) = enc.transform(train), enc.transform(dev), enc.transform(test)
    log.info("%d encoded features, %d train rows", len(names), len(train))

    mixer = LightGBMMixer(cfg)
    t0 = time.time()
    study = mixer.fit(x, train[cfg.target].to_numpy(), xd, dev[cfg.target].to_numpy())
    log.info("tuned %d trials in %.1fs", len(study.trials), time.time() - t0)
    pred = mixer.predict(xt)
    scores = metrics(test[cfg.target].to_numpy(), pred)

    pd.DataFrame([{"number": t.number, "value": t.value, **t.params} for t in study.trials]).to_csv("trials.csv", index=False)
    pd.DataFrame({"row": test.index, "truth": test[cfg.target], "prediction": pred}).to_csv("predictions.csv", index=False)
    gain = mixer.model.feature_importance("gain")
    with open("job.json", "w") as fh:
        json.dump({"types": types, "best_params": study.best_params, "scores": scores,
                   "importance": {n: round(float(g), 3) for n, g in zip(names, gain)}}, fh, indent=2)
    print("best params:", json.dumps(study.best_params))
    for k, v in scores.items():
        print(f"{k}: {v:.4f}")


if __name__ == "__main__":
    main()
