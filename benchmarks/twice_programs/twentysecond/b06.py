"""Effect of a training programme on wages, with propensity score weighting.

An observational data set with known effect is made; the effect is estimated
by inverse propensity weights and by stratification, with bootstrap confidence
intervals and a refutation with a placebo treatment.

Modelled on: https://github.com/py-why/dowhy/pull/1556
"""
import json
import logging
import time
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.utils import resample

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("causal")

SEED = 1556
CONFOUNDERS = ["age", "school", "married", "previous_wage"]


def make_data(rng, n=1500, effect=1.8):
    age = rng.integers(18, 60, n)
    school = np.clip(rng.normal(11, 2.5, n), 5, 20)
    married = (rng.random(n) < 0.25 + 0.008 * (age - 18)).astype(int)
    previous = np.clip(4 + 0.5 * school + 0.06 * age + rng.normal(0, 2, n), 1, None)
    logit = 1.6 - 0.03 * age - 0.05 * school + 0.2 * married - 0.05 * previous
    treated = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
    wage = 1.5 + 0.8 * previous + 0.1 * school + effect * treated + rng.normal(0, 1.5, n)
    return pd.DataFrame(
        {
            "age": age,
            "school": school,
            "married": married,
            "previous_wage": previous,
            "treated": treated,
            "wage": wage,
        }
    )


@dataclass
class Estimate:
    method: str
    value: float
    low: float = float("nan")
    high: float = float("nan")
    error: float = float("nan")

    def line(self):
        return f"{self.method:<16} {self.value:8.4f}  [{self.low:8.4f}, {self.high:8.4f}]  se {self.error:.5f}"


class CausalEstimator:
    """Base class: point estimate by the subclass, the rest from resampling."""

    name = "base"

    def __init__(self, data, treatment, outcome, confounders, num_simulations=120, confidence=0.95):
        self.data = data
        self.treatment = treatment
        self.outcome = outcome
        self.confounders = confounders
        self.num_simulations = num_simulations
        self.confidence = confidence

    def effect(self, data):
        raise NotImplementedError

    def propensity(self, data):
        model = LogisticRegression(C=10.0, max_iter=400)
        x = data[self.confounders].to_numpy(dtype=float)
        x = (x - x.mean(axis=0)) / x.std(axis=0)
        model.fit(x, data[self.treatment])
        return np.clip(model.predict_proba(x)[:, 1], 0.02, 0.98)

    def bootstrap_estimates(self):
        estimates = np.zeros(self.num_simulations)
        for index in range(self.num_simulations):
            sample = resample(self.data, n_samples=len(self.data))  # cause
            estimates[index] = self.effect(sample)
        return estimates

    def estimate(self):
        value = self.effect(self.data)
        simulated = self.bootstrap_estimates()
        variations = np.sort(simulated - value)
        low_index = int((1 - self.confidence) / 2 * self.num_simulations)
        high_index = self.num_simulations - 1 - low_index
        return Estimate(
            self.name,
            value,
            value - variations[high_index],
            value - variations[low_index],
            float(simulated.std(ddof=1)),
        )


class WeightingEstimator(CausalEstimator):
    name = "ips weighting"

    def effect(self, data):
        score = self.propensity(data)
        treated = data[self.treatment].to_numpy()
        y = data[self.outcome].to_numpy()
        w1 = treated / score
        w0 = (1 - treated) / (1 - score)
        return float((w1 * y).sum() / w1.sum() - (w0 * y).sum() / w0.sum())


class StratificationEstimator(CausalEstimator):
    name = "stratification"
    strata = 12

    def effect(self, data):
        score = self.propensity(data)
        edges = np.quantile(score, np.linspace(0, 1, self.strata + 1)[1:-1])
        stratum = np.searchsorted(edges, score)
        treated = data[self.treatment].to_numpy() == 1
        y = data[self.outcome].to_numpy()
        total, weight = 0.0, 0
        for k in range(self.strata):
            inside = stratum == k
            a, b = inside & treated, inside & ~treated
            if a.sum() < 3 or b.sum() < 3:
                continue
            total += inside.sum() * (y[a].mean() - y[b].mean())
            weight += inside.sum()
        return float(total / weight)


class RegressionEstimator(CausalEstimator):
    name = "regression"

    def effect(self, data):
        x = np.column_stack(
            [np.ones(len(data)), data[self.treatment], data[self.confounders].to_numpy(dtype=float)]
        )
        coef, *_ = np.linalg.lstsq(x, data[self.outcome].to_numpy(), rcond=None)
        return float(coef[1])


def placebo(estimator, rng, rounds=25):
    """Effects after the treatment has been dealt out anew."""
    effects = []
    for _ in range(rounds):
        fake = estimator.data.copy()
        fake[estimator.treatment] = rng.permutation(fake[estimator.treatment].to_numpy())
        effects.append(estimator.effect(fake))
    return float(np.mean(effects)), float(np.std(effects))


def balance(data, estimator):
    score = estimator.propensity(data)
    treated = data["treated"].to_numpy()
    weight = treated / score + (1 - treated) / (1 - score)
    rows = {}
    for name in CONFOUNDERS:
        v = data[name].to_numpy(dtype=float)
        raw = v[treated == 1].mean() - v[treated == 0].mean()
        adjusted = np.average(v[treated == 1], weights=weight[treated == 1]) - np.average(
            v[treated == 0], weights=weight[treated == 0]
        )
        rows[name] = (raw / v.std(), adjusted / v.std())
    return rows


def main():
    start = time.time()
    rng = np.random.default_rng(SEED)
    data = make_data(rng)
    data.to_csv("workers.csv", index=False, float_format="%.5f")
    naive = data.loc[data.treated == 1, "wage"].mean() - data.loc[data.treated == 0, "wage"].mean()
    print(f"rows {len(data)}, treated {int(data.treated.sum())}, naive difference {naive:.4f}")
    results = []
    for kind in (WeightingEstimator, StratificationEstimator, RegressionEstimator):
        estimator = kind(data, "treated", "wage", CONFOUNDERS)
        found = estimator.estimate()
        mean, spread = placebo(estimator, rng)
        log.info("%s done after %.1f s", found.method, time.time() - start)
        print(found.line() + f"  placebo {mean:+.4f} ({spread:.4f})")
        results.append({**found.__dict__, "placebo": mean})
    for name, (raw, adjusted) in balance(data, WeightingEstimator(data, "treated", "wage", CONFOUNDERS)).items():
        print(f"balance {name:<14} {raw:+.4f} -> {adjusted:+.4f}")
    with open("effects.json", "w") as handle:
        json.dump(results, handle, indent=2)


if __name__ == "__main__":
    main()
