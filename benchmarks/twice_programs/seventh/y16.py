"""https://github.com/optuna/optuna/issues/4412 - 'The random seed fixing doesn't work in a proper way when n_jobs > 1':
with several jobs optuna reseeds the sampler, so a seeded TPESampler suggests other parameters every time."""
import json
import logging
import sys
import time

import numpy as np
import optuna
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, PolynomialFeatures, StandardScaler

optuna.logging.set_verbosity(optuna.logging.WARNING)
logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(message)s")
SEED = 42


def load_patients(n=420):
    rng = np.random.default_rng(SEED)
    age = rng.normal(55, 12, n)
    bmi = rng.normal(27, 4, n)
    pressure = 90 + 0.5 * age + 0.8 * bmi + rng.normal(0, 10, n)
    sugar = rng.lognormal(1.6, 0.25, n)
    smoker = rng.random(n) < 0.3
    risk = 0.05 * (age - 55) + 0.02 * (pressure - 135) + 0.03 * (bmi - 27) ** 2 / 4 + 0.9 * smoker + 0.5 * (sugar > 6)
    y = (risk + rng.logistic(0, 0.8, n) > 0.6).astype(int)
    return np.column_stack([age, bmi, pressure, sugar, smoker]), y


class Objective:
    def __init__(self, x, y):
        self.x, self.y = x, y
        self.folds = StratifiedKFold(4, shuffle=True, random_state=SEED)

    def build(self, params):
        columns = ColumnTransformer([
            ("poly", make_pipeline(StandardScaler(), PolynomialFeatures(params["degree"], include_bias=False)), [0, 1, 2]),
            ("bins", KBinsDiscretizer(params["bins"], encode="onehot-dense", strategy="uniform"), [3]),
            ("flag", "passthrough", [4]),
        ])
        return make_pipeline(columns, LogisticRegression(C=params["C"], l1_ratio=0, max_iter=300, solver="lbfgs",
                                                         class_weight="balanced" if params["balanced"] else None))

    def __call__(self, trial):
        params = {
            "degree": trial.suggest_int("degree", 1, 3),
            "bins": trial.suggest_int("bins", 2, 9),
            "C": trial.suggest_float("C", 1e-3, 1e2, log=True),
            "balanced": trial.suggest_categorical("balanced", [True, False]),
        }
        return cross_val_score(self.build(params), self.x, self.y, cv=self.folds, scoring="neg_log_loss").mean()


def main():
    np.random.seed(SEED)
    x, y = load_patients()
    sampler = optuna.samplers.TPESampler(seed=SEED, n_startup_trials=8)
    study = optuna.create_study(direction="maximize", sampler=sampler, study_name=f"risk-{int(time.time())}")
    objective = Objective(x, y)
    t0 = time.time()
    study.optimize(objective, n_trials=30, n_jobs=2)  # cause
    logging.info("%s: %d trials in %.1fs", study.study_name, len(study.trials), time.time() - t0)
    model = objective.build(study.best_params).fit(x, y)
    risk = model.predict_proba(x)[:, 1]
    logging.info("best log loss %.6f with %s", -study.best_value, study.best_params)
    result = {"best": study.best_params, "log_loss": -study.best_value,
              "deciles": np.quantile(risk, np.linspace(0, 1, 11)).tolist()}
    with open("best_model.json", "w") as f:
        json.dump(result, f, indent=1, sort_keys=True)


if __name__ == "__main__":
    main()
