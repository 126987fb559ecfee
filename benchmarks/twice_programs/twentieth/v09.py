"""A small AutoML search for tabular regression.

Tries pipelines (scaler, feature selection, model, hyper-parameters) one after
the other, keeps the leaderboard and builds a greedy ensemble of the best ones.
Writes leaderboard.csv, ensemble.json and test_predictions.npy.
Modelled on: https://github.com/automl/auto-sklearn/issues/725
"""
import csv
import json
import logging
import time

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.ensemble import ExtraTreesRegressor, GradientBoostingRegressor, RandomForestRegressor
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import ElasticNet, Ridge
from sklearn.metrics import mean_squared_error, r2_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, QuantileTransformer, StandardScaler
from sklearn.tree import DecisionTreeRegressor

logging.basicConfig(level=logging.INFO, format="%(asctime)s [automl] %(message)s")
log = logging.getLogger("automl")

SEED = 1234
SETTINGS = {
    "time_left_for_this_task": 4.0,
    "max_trials": 20000,
    "ensemble_size": 30,
    "ensemble_nbest": 40,
    "exploit_after": 15,
    "exploit_probability": 0.6,
}


class SearchSpace:
    """Draws and perturbs pipeline configurations."""

    MODELS = ("ridge", "enet", "knn", "tree", "rf", "extra", "gbm")
    SCALERS = ("standard", "minmax", "quantile", "none")

    def __init__(self, n_features, rng):
        self.n_features = n_features
        self.rng = rng

    def sample(self):
        model = str(self.rng.choice(self.MODELS))
        return {
            "scaler": str(self.rng.choice(self.SCALERS)),
            "k": int(self.rng.integers(4, self.n_features + 1)),
            "model": model,
            "params": self._params(model),
            "seed": int(self.rng.integers(2 ** 31 - 1)),
        }

    def _params(self, model):
        rng = self.rng
        if model == "ridge":
            return {"alpha": float(10 ** rng.uniform(-3, 3))}
        if model == "enet":
            return {"alpha": float(10 ** rng.uniform(-4, 0)), "l1_ratio": float(rng.uniform(0.05, 0.95))}
        if model == "knn":
            return {"n_neighbors": int(rng.integers(2, 30)), "p": int(rng.integers(1, 3))}
        if model == "tree":
            return {"max_depth": int(rng.integers(2, 14)), "min_samples_leaf": int(rng.integers(1, 20))}
        if model in ("rf", "extra"):
            return {"n_estimators": int(rng.integers(3, 16)), "max_features": float(rng.uniform(0.3, 1.0)),
                    "min_samples_leaf": int(rng.integers(1, 6))}
        return {"n_estimators": int(rng.integers(10, 45)), "learning_rate": float(10 ** rng.uniform(-1.7, -0.3)),
                "max_depth": int(rng.integers(2, 5)), "subsample": float(rng.uniform(0.5, 1.0))}

    def perturb(self, config):
        child = dict(config, params=self._params(config["model"]))
        if self.rng.random() < 0.3:
            child["k"] = int(np.clip(child["k"] + self.rng.integers(-2, 3), 3, self.n_features))
        if self.rng.random() < 0.2:
            child["scaler"] = str(self.rng.choice(self.SCALERS))
        child["seed"] = int(self.rng.integers(2 ** 31 - 1))
        return child


def build(config):
    scaler = {"standard": StandardScaler(), "minmax": MinMaxScaler(),
              "quantile": QuantileTransformer(n_quantiles=50, random_state=config["seed"]),
              "none": "passthrough"}[config["scaler"]]
    p, seed = config["params"], config["seed"]
    model = {
        "ridge": lambda: Ridge(**p),
        "enet": lambda: ElasticNet(**p, max_iter=5000),
        "knn": lambda: KNeighborsRegressor(**p),
        "tree": lambda: DecisionTreeRegressor(**p, random_state=seed),
        "rf": lambda: RandomForestRegressor(**p, random_state=seed),
        "extra": lambda: ExtraTreesRegressor(**p, random_state=seed),
        "gbm": lambda: GradientBoostingRegressor(**p, random_state=seed),
    }[config["model"]]()
    return Pipeline([("scale", scaler), ("select", SelectKBest(f_regression, k=config["k"])), ("model", model)])


class AutoRegressor:
    def __init__(self, settings, seed):
        self.settings = settings
        self.rng = np.random.default_rng(seed)
        self.leaderboard = []
        self.ensemble = []

    def fit(self, X, y):
        X_fit, X_val, y_fit, y_val = train_test_split(X, y, test_size=0.33, random_state=SEED)
        space = SearchSpace(X.shape[1], self.rng)
        started = time.perf_counter()
        for trial in range(self.settings["max_trials"]):
            if time.perf_counter() - started > self.settings["time_left_for_this_task"]:  # cause
                log.info("search finished after %d trials", trial)
                break
            config = self._propose(space, trial)
            pipeline = build(config).fit(X_fit, y_fit)
            pred = pipeline.predict(X_val)
            self.leaderboard.append({"trial": trial, "config": config, "pipeline": pipeline, "val_pred": pred,
                                     "loss": float(mean_squared_error(y_val, pred))})
        self.leaderboard.sort(key=lambda e: (e["loss"], e["trial"]))
        self._select_ensemble(y_val)
        return self

    def _propose(self, space, trial):
        s = self.settings
        if trial >= s["exploit_after"] and self.rng.random() < s["exploit_probability"]:
            best = sorted(self.leaderboard, key=lambda e: e["loss"])[:5]
            return space.perturb(best[int(self.rng.integers(len(best)))]["config"])
        return space.sample()

    def _select_ensemble(self, y_val):
        """Greedy forward selection with replacement."""
        pool = self.leaderboard[: self.settings["ensemble_nbest"]]
        total = np.zeros(len(y_val))
        for step in range(1, self.settings["ensemble_size"] + 1):
            losses = [mean_squared_error(y_val, (total + e["val_pred"]) / step) for e in pool]
            best = int(np.argmin(losses))
            total += pool[best]["val_pred"]
            self.ensemble.append(pool[best])

    def predict(self, X):
        return np.mean([e["pipeline"].predict(X) for e in self.ensemble], axis=0)


def save(auto, predictions, scores):
    with open("leaderboard.csv", "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["rank", "trial", "model", "scaler", "k", "loss"])
        for rank, e in enumerate(auto.leaderboard):
            c = e["config"]
            writer.writerow([rank, e["trial"], c["model"], c["scaler"], c["k"], repr(e["loss"])])
    members = {}
    for e in auto.ensemble:
        members[e["trial"]] = members.get(e["trial"], 0) + 1
    with open("ensemble.json", "w") as fh:
        json.dump({"scores": scores,
                   "members": [{"trial": t, "weight": n / len(auto.ensemble)} for t, n in sorted(members.items())]},
                  fh, indent=2)
    np.save("test_predictions.npy", predictions)


def main():
    X, y = make_friedman1(n_samples=280, n_features=14, noise=1.0, random_state=SEED)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=SEED)
    log.info("training data %s, test data %s", X_train.shape, X_test.shape)

    auto = AutoRegressor(SETTINGS, SEED).fit(X_train, y_train)
    predictions = auto.predict(X_test)
    scores = {
        "trials": len(auto.leaderboard),
        "best_validation_mse": auto.leaderboard[0]["loss"],
        "test_mse": float(mean_squared_error(y_test, predictions)),
        "test_r2": float(r2_score(y_test, predictions)),
    }
    save(auto, predictions, scores)
    for rank, e in enumerate(auto.leaderboard[:5]):
        log.info("#%d trial %3d %-6s %s loss %.5f", rank, e["trial"], e["config"]["model"], e["config"]["params"], e["loss"])
    print(json.dumps(scores, indent=2))


if __name__ == "__main__":
    main()
