"""https://github.com/nasa/UQPCE/pull/25 : Variable.generate_samples builds scipy's LatinHypercube without a seed,
so resampled bases and confidence intervals change from run to run even after np.random.seed()."""
import csv
import datetime
import platform
from itertools import combinations_with_replacement

import numpy as np
from scipy import stats
from scipy.stats import qmc


class Variable:
    registry = []

    def __init__(self, name, dist):
        self.name = name
        self.dist = dist
        Variable.registry.append(self)

    def standardize(self, x):
        return (x - self.dist.mean()) / self.dist.std()

    def generate_samples(self, count):
        engine = qmc.LatinHypercube(d=1)  # cause
        u = engine.random(count).ravel()
        return self.dist.ppf(np.clip(u, 1e-9, 1 - 1e-9))


class Uniform(Variable):
    def __init__(self, name, low, high):
        super().__init__(name, stats.uniform(low, high - low))


class Normal(Variable):
    def __init__(self, name, mean, sd):
        super().__init__(name, stats.norm(mean, sd))


class Beta(Variable):
    def __init__(self, name, a, b):
        super().__init__(name, stats.beta(a, b))


def multi_indices(d, order):
    idx = [()]
    for o in range(1, order + 1):
        idx += list(combinations_with_replacement(range(d), o))
    return idx


def basis(z, idx):
    cols = []
    for t in idx:
        c = np.ones(len(z))
        for k in t:
            c = c * z[:, k]
        cols.append(c)
    return np.stack(cols, 1)


class PCE:
    def __init__(self, variables, order=3):
        self.variables = variables
        self.idx = multi_indices(len(variables), order)

    def fit(self, x, y):
        z = np.stack([v.standardize(x[:, i]) for i, v in enumerate(self.variables)], 1)
        phi = basis(z, self.idx)
        self.coef, *_ = np.linalg.lstsq(phi, y, rcond=None)
        self.residual = y - phi @ self.coef
        return self

    def predict(self, x):
        z = np.stack([v.standardize(x[:, i]) for i, v in enumerate(self.variables)], 1)
        return basis(z, self.idx) @ self.coef


def simulator(x):
    return x[:, 0] ** 2 + 0.5 * x[:, 1] * x[:, 2] + np.sin(2 * x[:, 2]) + np.exp(0.3 * x[:, 0] * x[:, 3])


def training_design(variables, n):
    cols = []
    for v in variables:
        u = np.random.rand(n)
        cols.append(v.dist.ppf(np.clip(u, 1e-6, 1 - 1e-6)))
    return np.stack(cols, 1)


def confidence_interval(model, variables, count, level=0.95):
    sample = np.stack([v.generate_samples(count) for v in variables], 1)
    perm = np.stack([np.random.permutation(count) for _ in variables], 1)
    sample = np.take_along_axis(sample, perm, 0)
    out = model.predict(sample)
    lo, hi = np.quantile(out, [(1 - level) / 2, (1 + level) / 2])
    tail = np.sort(out)[int(0.9 * count):]
    return out, lo, hi, tail.mean()


def sobol_indices(model, variables, count):
    a = training_design(variables, count)
    b = training_design(variables, count)
    fa = model.predict(a)
    total = []
    for i in range(len(variables)):
        c = a.copy()
        c[:, i] = b[:, i]
        total.append(float(np.mean((fa - model.predict(c)) ** 2) / (2 * np.var(fa))))
    return total


def main():
    np.random.seed(33)
    print(datetime.datetime.now().isoformat(), platform.node())
    variables = [Uniform("mach", 0.2, 1.4), Normal("alpha", 1.0, 0.4), Uniform("beta", -1, 1), Beta("gamma", 2, 5)]
    x = training_design(variables, 300)
    y = simulator(x) + 0.02 * np.random.randn(300)
    rows = []
    for order in (1, 2, 3):
        model = PCE(variables, order).fit(x, y)
        out, lo, hi, cvar = confidence_interval(model, variables, 20000)
        xs = training_design(variables, 500)
        rmse = np.sqrt(np.mean((model.predict(xs) - simulator(xs)) ** 2))
        rows.append([order, out.mean(), out.std(), lo, hi, cvar, rmse] + sobol_indices(model, variables, 4000))
        print("order %d mean %.5f CI [%.5f, %.5f] cvar %.5f rmse %.5f" % (order, out.mean(), lo, hi, cvar, rmse))
    with open("uq_summary.csv", "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["order", "mean", "std", "lo", "hi", "cvar", "rmse"] + ["S_" + v.name for v in variables])
        w.writerows(rows)
    print("finished at", datetime.datetime.now().time())


if __name__ == "__main__":
    main()
