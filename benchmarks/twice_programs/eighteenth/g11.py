"""A little AutoML run: random search over model families, leaderboard, blending.

Candidates are drawn from a seeded space and cross-validated one after another;
the best few are blended and the blend is scored on the hold-out.  Settings are
those of the nightly job.

Modelled on: https://github.com/haghish/shapley/issues/2
"""
import dataclasses
import json
import pathlib
import time

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold, train_test_split


@dataclasses.dataclass
class Config:
    max_runtime_secs: float = 2.0
    max_models: int = 100_000
    nfolds: int = 3
    seed: int = 10
    blend: int = 8


def load_prostate(seed=380):
    """Stand-in for the prostate table: 380 patients, eight columns."""
    x, y = make_classification(
        n_samples=380,
        n_features=8,
        n_informative=5,
        n_redundant=1,
        flip_y=0.08,
        class_sep=0.7,
        random_state=seed,
    )
    columns = ["AGE", "RACE", "DPROS", "DCAPS", "PSA", "VOL", "GLEASON", "ID2"]
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    return pd.DataFrame(x, columns=columns), pd.Series(y, name="CAPSULE")


class Ridge:
    """Ridge scores on a subset of the columns and their squares."""

    def __init__(self, columns, alpha):
        self.columns = list(columns)
        self.alpha = alpha

    def features(self, x):
        part = x[:, self.columns]
        return np.column_stack([np.ones(len(x)), part, part**2])

    def fit(self, x, y):
        f = self.features(x)
        penalty = self.alpha * np.eye(f.shape[1])
        self.beta = np.linalg.solve(f.T @ f + penalty, f.T @ (2.0 * y - 1))
        return self

    def predict(self, x):
        return 1 / (1 + np.exp(-2 * self.features(x) @ self.beta))


class Elm(Ridge):
    """Ridge scores on a random hidden layer."""

    def __init__(self, hidden, alpha, state):
        self.hidden, self.alpha, self.state = hidden, alpha, state

    def features(self, x):
        rng = np.random.default_rng(self.state)
        w = rng.normal(size=(x.shape[1], self.hidden)) * 0.6
        return np.column_stack([np.ones(len(x)), np.tanh(x @ w + rng.normal(size=self.hidden))])


class Space:
    """Draws model families and their settings."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def draw(self):
        alpha = round(float(np.exp(self.rng.uniform(-4, 4))), 5)
        if self.rng.random() < 0.5:
            size = int(self.rng.integers(2, 9))
            columns = sorted(self.rng.choice(8, size=size, replace=False).tolist())
            return "glm", {"columns": columns, "alpha": alpha}, Ridge(columns, alpha)
        hidden, state = int(self.rng.integers(5, 31)), int(self.rng.integers(1_000_000))
        return "elm", {"hidden": hidden, "alpha": alpha, "state": state}, Elm(hidden, alpha, state)


def auc_score(y, score):
    """Area under the ROC curve, from the ranks."""
    ranks = np.empty(len(y))
    ranks[np.argsort(score, kind="stable")] = np.arange(1, len(y) + 1)
    positive = y.sum()
    return (ranks[y == 1].sum() - positive * (positive + 1) / 2) / (positive * (len(y) - positive))


class AutoML:
    def __init__(self, config):
        self.config = config
        self.entries = []

    def cross_validate(self, model, x, y, folds):
        out = np.zeros(len(y))
        for train, test in folds:
            out[test] = model.fit(x[train], y[train]).predict(x[test])
        clipped = np.clip(out, 1e-6, 1 - 1e-6)
        loss = -np.mean(np.where(y == 1, np.log(clipped), np.log(1 - clipped)))
        return float(auc_score(y, out)), float(loss)

    def train(self, x, y):
        space = Space(self.config.seed)
        splitter = StratifiedKFold(self.config.nfolds, shuffle=True, random_state=self.config.seed)
        folds = list(splitter.split(x, y))
        began = time.monotonic()
        while len(self.entries) < self.config.max_models:
            if time.monotonic() - began > self.config.max_runtime_secs:  # cause
                break
            family, params, model = space.draw()
            auc, loss = self.cross_validate(model, x, y, folds)
            self.entries.append(
                {
                    "model_id": f"{family}_{len(self.entries) + 1:05d}",
                    "auc": round(auc, 6),
                    "logloss": round(loss, 6),
                    "params": params,
                    "model": model,
                }
            )
        self.entries.sort(key=lambda e: (-e["auc"], e["model_id"]))
        for entry in self.entries[: self.config.blend]:
            entry["model"].fit(x, y)
        return self

    def leaderboard(self):
        keys = ["model_id", "auc", "logloss"]
        frame = pd.DataFrame([{k: e[k] for k in keys} for e in self.entries])
        frame["params"] = [json.dumps(e["params"]) for e in self.entries]
        return frame

    def predict(self, x):
        top = self.entries[: self.config.blend]
        return np.mean([e["model"].predict(x) for e in top], axis=0)


def main():
    config = Config()
    x, y = load_prostate()
    x_train, x_test, y_train, y_test = train_test_split(
        x, y, test_size=0.25, stratify=y, random_state=config.seed
    )
    aml = AutoML(config).train(x_train.to_numpy(), y_train.to_numpy())
    board = aml.leaderboard()
    board.to_csv("leaderboard.csv", index=False)
    blended = aml.predict(x_test.to_numpy())
    metrics = {
        "models": len(board),
        "leader": board.model_id[0],
        "leader_auc": float(board.auc[0]),
        "blend_auc": round(float(roc_auc_score(y_test, blended)), 6),
        "blend_logloss": round(float(log_loss(y_test, blended)), 6),
    }
    pathlib.Path("metrics.json").write_text(json.dumps(metrics, indent=1))
    print(board.drop(columns="params").head(10).to_string(index=False))
    print(metrics)
    print(f"finished {time.strftime('%Y-%m-%d %H:%M:%S')}")


if __name__ == "__main__":
    main()
