"""Hyper-parameter optimisation of one phase."""
import logging

import numpy as np
import optuna

from .model import PARAMETERS, run

optuna.logging.set_verbosity(optuna.logging.WARNING)
log = logging.getLogger("estimator")


class Estimator:
    WEIGHTS = {"I": 1.0, "R": 0.7, "F": 0.5}

    def __init__(self, records, population):
        self.records = records
        self.population = population
        self.target = records[["S", "I", "R", "F"]].to_numpy(dtype=float)
        self.study = optuna.create_study(direction="minimize")  # cause
        self.best_score = np.inf

    def _score(self, simulated):
        total, weight = 0.0, 0.0
        for j, name in enumerate(("S", "I", "R", "F")):
            w = self.WEIGHTS.get(name, 0.0)
            if not w:
                continue
            a, b = self.target[:, j] + 1, np.maximum(simulated[:, j], 0) + 1
            total += w * float(np.mean((np.log(a) - np.log(b)) ** 2))
            weight += w
        return float(np.sqrt(total / weight))

    def objective(self, trial):
        p = {k: trial.suggest_float(k, lo, hi) for k, (lo, hi) in PARAMETERS.items()}
        sim = run(self.target[0], len(self.target), population=self.population, **p)
        return self._score(sim)

    def run(self, n_trials):
        step = max(n_trials // 5, 1)
        done = 0
        while done < n_trials:
            k = min(step, n_trials - done)
            self.study.optimize(self.objective, n_trials=k, n_jobs=1)
            done += k
            self.best_score = self.study.best_value
            log.debug("%d trials, best %.5f", done, self.best_score)
        return dict(self.study.best_params), float(self.best_score)
