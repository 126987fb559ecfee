"""minibayes: Metropolis sampling for small hierarchical models.

Models are lists of free variables with priors and a likelihood; a sampler draws from
the posterior with adaptive random-walk steps.  Here the pass rates of some schools are
estimated, and new schools are simulated from the posterior.  Writes ``trace.csv`` and
``forecast.json``.

Modelled on: https://github.com/pymc-devs/pymc/issues/1394
"""
import csv
import json
import logging
import time

import numpy as np
from scipy import stats

log = logging.getLogger("minibayes")


class Variable:
    def __init__(self, name, logprior, start):
        self.name = name
        self.logprior = logprior
        self.start = np.atleast_1d(np.asarray(start, float))


class Model:
    def __init__(self, loglike):
        self.variables = []
        self.loglike = loglike

    def add(self, name, logprior, start):
        self.variables.append(Variable(name, logprior, start))
        return self

    def start_point(self):
        return {v.name: v.start.copy() for v in self.variables}

    def logp(self, point):
        total = self.loglike(point)
        for v in self.variables:
            total += v.logprior(point[v.name], point)
        return float(total)


class Metropolis:
    """Random-walk step for one variable with a scale tuned during burn-in."""

    def __init__(self, model, name, scale=0.5):
        self.model = model
        self.name = name
        self.scale = scale
        self.accepted = self.tried = 0

    def step(self, point, logp):
        current = point[self.name]
        proposal = dict(point)
        proposal[self.name] = current + np.random.normal(0, self.scale, current.shape)
        new = self.model.logp(proposal)
        self.tried += 1
        if np.log(np.random.uniform()) < new - logp:
            self.accepted += 1
            return proposal, new
        return point, logp

    def tune(self):
        rate = self.accepted / max(self.tried, 1)
        self.scale *= 1.3 if rate > 0.4 else 0.75 if rate < 0.2 else 1.0
        self.accepted = self.tried = 0


class Trace:
    def __init__(self, names):
        self.draws = {name: [] for name in names}

    def record(self, point):
        for name, values in self.draws.items():
            values.append(point[name].copy())

    def __getitem__(self, name):
        return np.array(self.draws[name])


def _iter_sample(draws, tune, model, steppers, random_seed=None):
    np.random.seed(random_seed)  # cause
    point = model.start_point()
    logp = model.logp(point)
    for i in range(tune + draws):
        for stepper in steppers:
            point, logp = stepper.step(point, logp)
        if i < tune and (i + 1) % 50 == 0:
            for stepper in steppers:
                stepper.tune()
        if i >= tune:
            yield point


def sample(model, draws=1500, tune=500, chains=2, random_seed=None):
    """Draw from the posterior of a model; returns one trace for each chain."""
    traces = []
    for chain in range(chains):
        started = time.perf_counter()
        steppers = [Metropolis(model, v.name) for v in model.variables]
        trace = Trace([v.name for v in model.variables])
        for point in _iter_sample(draws, tune, model, steppers, random_seed):
            trace.record(point)
        traces.append(trace)
        log.info("chain %d: %d draws in %.2fs", chain, draws, time.perf_counter() - started)
    return traces


def simulate_schools(schools=12):
    rng = np.random.default_rng(645)
    pupils = rng.integers(20, 120, schools)
    ability = rng.normal(0.6, 0.8, schools)
    passed = rng.binomial(pupils, 1 / (1 + np.exp(-ability)))
    return pupils, passed


def build_model(pupils, passed):
    def loglike(point):
        theta = point["theta"]
        return np.sum(passed * theta - pupils * np.logaddexp(0, theta))

    def theta_prior(value, point):
        return np.sum(stats.norm._logpdf((value - point["mu"]) / np.exp(point["log_tau"]))
                      - point["log_tau"])

    return (Model(loglike)
            .add("mu", lambda v, p: -0.5 * np.sum((v / 2.0) ** 2), 0.0)
            .add("log_tau", lambda v, p: -0.5 * np.sum((v + 0.5) ** 2), 0.0)
            .add("theta", theta_prior, np.zeros(len(pupils))))


def gelman_rubin(traces, name):
    values = np.array([t[name][:, 0] for t in traces])
    n = values.shape[1]
    within = values.var(axis=1, ddof=1).mean()
    between = n * values.mean(axis=1).var(ddof=1)
    return float(np.sqrt((1 - 1 / n) + between / within / n))


def forecast(traces, pupils=60, schools=500):
    mu = np.concatenate([t["mu"][:, 0] for t in traces])
    tau = np.exp(np.concatenate([t["log_tau"][:, 0] for t in traces]))
    pick = np.random.randint(0, len(mu), schools)
    theta = np.random.normal(mu[pick], tau[pick])
    passed = np.random.binomial(pupils, 1 / (1 + np.exp(-theta)))
    return {"mean": float(passed.mean()), "low": float(np.quantile(passed, 0.05)),
            "high": float(np.quantile(passed, 0.95))}


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    np.random.seed(1)
    pupils, passed = simulate_schools()
    traces = sample(build_model(pupils, passed))
    with open("trace.csv", "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["chain", "draw", "mu", "log_tau"])
        for c, trace in enumerate(traces):
            for i, (m, t) in enumerate(zip(trace["mu"][:, 0], trace["log_tau"][:, 0])):
                writer.writerow([c, i, f"{m:.6f}", f"{t:.6f}"])
    outlook = forecast(traces)
    with open("forecast.json", "w") as fh:
        json.dump(outlook, fh, indent=2)
    for name in ("mu", "log_tau"):
        values = np.concatenate([t[name][:, 0] for t in traces])
        print(f"{name:8s} mean {values.mean():.5f} sd {values.std():.5f} "
              f"rhat {gelman_rubin(traces, name):.4f}")
    print("theta", " ".join(f"{x:.3f}" for x in np.mean([t["theta"].mean(0) for t in traces], 0)))
    print("new school passes:", outlook)


if __name__ == "__main__":
    main()
