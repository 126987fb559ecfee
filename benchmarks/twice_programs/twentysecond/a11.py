"""gptune: hyper-parameter search with a Gaussian process sampler for Optuna.

A sampler models the objective with a Gaussian process over the parameters that are
common to all trials; parameters outside of that space and the first trials are left
to an independent sampler.  It tunes a gradient boosting model on a generated data
set and writes ``trials.csv`` and ``best.json``.

Modelled on: https://github.com/optuna/optuna/issues/2329
"""
import csv
import json
import logging
import warnings

import numpy as np
import optuna
from optuna.samplers import BaseSampler, RandomSampler
from optuna.search_space import IntersectionSearchSpace
from scipy.stats import norm
from sklearn.datasets import make_friedman1
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, cross_val_score

warnings.filterwarnings("ignore")
log = logging.getLogger("gptune")


class GPSampler(BaseSampler):
    """Expected improvement over a Gaussian process surrogate."""

    def __init__(self, gp_kwargs=None, n_startup_trials=8, candidates=300):
        self._gp_kwargs = dict(gp_kwargs or {})
        self._n_startup_trials = n_startup_trials
        self._candidates = candidates
        self._rng = np.random.RandomState(self._gp_kwargs.get("random_state"))
        self._independent_sampler = RandomSampler()  # cause
        self._search_space = IntersectionSearchSpace()

    def infer_relative_search_space(self, study, trial):
        space = self._search_space.calculate(study)
        return {name: dist for name, dist in space.items()
                if not dist.single()
                and not isinstance(dist, optuna.distributions.CategoricalDistribution)}

    def sample_relative(self, study, trial, search_space):
        done = [t for t in study.get_trials(deepcopy=False)
                if t.state == optuna.trial.TrialState.COMPLETE]
        if len(done) < self._n_startup_trials or not search_space:
            return {}
        names = sorted(search_space)
        X = np.array([[self._to_unit(search_space[n], t.params[n]) for n in names] for t in done])
        y = np.array([t.value for t in done])
        best = self._suggest(X, (y - y.mean()) / (y.std() + 1e-9))
        return {n: self._from_unit(search_space[n], u) for n, u in zip(names, best)}

    def _suggest(self, X, y):
        kernel = ConstantKernel() * Matern(nu=2.5) + WhiteKernel(1e-3)
        gp = GaussianProcessRegressor(kernel, n_restarts_optimizer=1, **self._gp_kwargs)
        gp.fit(X, y)
        candidates = self._rng.uniform(size=(self._candidates, X.shape[1]))
        mean, std = gp.predict(candidates, return_std=True)
        gain = y.min() - mean
        z = gain / np.maximum(std, 1e-9)
        return candidates[np.argmax(gain * norm.cdf(z) + std * norm.pdf(z))]

    @staticmethod
    def _to_unit(dist, value):
        low, high = (np.log(dist.low), np.log(dist.high)) if dist.log else (dist.low, dist.high)
        value = np.log(value) if dist.log else value
        return (value - low) / (high - low)

    @staticmethod
    def _from_unit(dist, unit):
        low, high = (np.log(dist.low), np.log(dist.high)) if dist.log else (dist.low, dist.high)
        value = low + unit * (high - low)
        value = float(np.exp(value)) if dist.log else float(value)
        value = min(max(value, dist.low), dist.high)
        if isinstance(dist, optuna.distributions.IntDistribution):
            return int(round(value))
        return value

    def sample_independent(self, study, trial, name, distribution):
        return self._independent_sampler.sample_independent(study, trial, name, distribution)  # cause


class Objective:
    def __init__(self, seed):
        self.X, self.y = make_friedman1(n_samples=220, noise=1.0, random_state=seed)
        self.cv = KFold(3, shuffle=True, random_state=seed)
        self.seed = seed

    def build(self, trial):
        kind = trial.suggest_categorical("model", ["boosting", "ridge"])
        strength = trial.suggest_float("strength", 1e-2, 1.0, log=True)
        if kind == "ridge":
            return Ridge(alpha=strength * 10)
        return GradientBoostingRegressor(
            learning_rate=strength,
            n_estimators=trial.suggest_int("n_estimators", 10, 60),
            max_depth=trial.suggest_int("max_depth", 1, 4),
            subsample=trial.suggest_float("subsample", 0.5, 1.0),
            random_state=self.seed)

    def __call__(self, trial):
        model = self.build(trial)
        scores = cross_val_score(model, self.X, self.y, cv=self.cv,
                                 scoring="neg_mean_squared_error")
        return float(-scores.mean())


def write_trials(study, path):
    keys = ["model", "strength", "n_estimators", "max_depth", "subsample"]
    with open(path, "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["trial", "value"] + keys)
        for t in study.trials:
            writer.writerow([t.number, round(t.value, 6)] + [t.params.get(k, "") for k in keys])


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = GPSampler(gp_kwargs={"random_state": 123})
    study = optuna.create_study(direction="minimize", sampler=sampler)
    study.optimize(Objective(seed=5), n_trials=22)
    log.info("finished %d trials", len(study.trials))
    write_trials(study, "trials.csv")
    with open("best.json", "w") as fh:
        json.dump({"value": study.best_value, "params": study.best_params}, fh, indent=2)
    print("best value: %.6f" % study.best_value)
    for key, value in sorted(study.best_params.items()):
        print(f"  {key} = {value}")
    values = [t.value for t in study.trials]
    for cut in (5, 10, 15, 22):
        print(f"after {cut:2d} trials: {min(values[:cut]):.6f}")


if __name__ == "__main__":
    main()
