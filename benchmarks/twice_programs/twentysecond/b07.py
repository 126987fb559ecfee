"""Multi-start estimation of the parameters of a signalling pathway.

A small ODE model (receptor, kinase, feedback) is fitted to noisy synthetic
measurements from many start points, the optima are ranked and clustered, and
a profile likelihood of one parameter is calculated.

Modelled on: https://github.com/ICB-DCM/pyPESTO/pull/1391
"""
import json
import logging
import random
import time

import numpy as np
from scipy.optimize import minimize

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("estimate")

random.seed(1391)  # cause

TRUE = np.log10([0.8, 0.25, 1.4, 0.35, 0.6])
NAMES = ["k_on", "k_off", "k_act", "k_deact", "k_fb"]
LOWER = np.full(5, -2.0)
UPPER = np.full(5, 1.5)
TIMES = np.linspace(0, 12, 13)


def simulate(theta, substeps=8):
    """Fourth order Runge-Kutta for receptor, kinase and inhibitor."""
    k_on, k_off, k_act, k_deact, k_fb = (float(v) for v in 10.0 ** np.asarray(theta))

    def rhs(r, k, i):
        dr = k_on * (1 - r) - k_off * r - k_fb * i * r
        dk = k_act * r * (1 - k) - k_deact * k
        di = 0.3 * k - 0.15 * i
        return dr, dk, di

    r = k = i = 0.0
    out = np.zeros((len(TIMES), 2))
    h = (TIMES[1] - TIMES[0]) / substeps
    for n in range(1, len(TIMES)):
        for _ in range(substeps):
            a = rhs(r, k, i)
            b = rhs(r + h / 2 * a[0], k + h / 2 * a[1], i + h / 2 * a[2])
            c = rhs(r + h / 2 * b[0], k + h / 2 * b[1], i + h / 2 * b[2])
            d = rhs(r + h * c[0], k + h * c[1], i + h * c[2])
            r += h / 6 * (a[0] + 2 * b[0] + 2 * c[0] + d[0])
            k += h / 6 * (a[1] + 2 * b[1] + 2 * c[1] + d[1])
            i += h / 6 * (a[2] + 2 * b[2] + 2 * c[2] + d[2])
            if not (abs(r) < 1e3 and abs(k) < 1e3 and abs(i) < 1e3):
                out[n:] = 1e3
                return out
        out[n] = k, i
    return out


def measure(sigma=0.03):
    """Synthetic measurements, with a fixed disturbance."""
    clean = simulate(TRUE)
    wave = np.sin(np.arange(clean.size) * 2.399).reshape(clean.shape)
    return clean + sigma * wave * 1.3


class Objective:
    def __init__(self, data, sigma=0.03):
        self.data = data
        self.sigma = sigma
        self.calls = 0

    def __call__(self, theta):
        self.calls += 1
        residual = (simulate(theta) - self.data) / self.sigma
        return 0.5 * float((residual**2).sum())


class Problem:
    def __init__(self, objective, lower, upper, names):
        self.objective = objective
        self.lower = lower
        self.upper = upper
        self.names = names

    @property
    def bounds(self):
        return list(zip(self.lower, self.upper))


def startpoints(problem, n_starts):
    """Latin hypercube over the bounds."""
    dim = len(problem.lower)
    points = np.zeros((n_starts, dim))
    for d in range(dim):
        strata = (np.arange(n_starts) + np.random.random(n_starts)) / n_starts  # cause
        points[:, d] = [strata[j] for j in random.sample(range(n_starts), n_starts)]
    return problem.lower + points * (problem.upper - problem.lower)


def multistart(problem, n_starts, maxiter=12):
    results = []
    for number, x0 in enumerate(startpoints(problem, n_starts)):
        before = problem.objective.calls
        found = minimize(
            problem.objective,
            x0,
            method="L-BFGS-B",
            bounds=problem.bounds,
            options={"maxiter": maxiter},
        )
        results.append(
            {
                "start": number,
                "fval": float(found.fun),
                "x": [round(float(v), 6) for v in found.x],
                "calls": problem.objective.calls - before,
            }
        )
        log.info("start %d fval %.3f", number, found.fun)
    results.sort(key=lambda row: row["fval"])
    return results


def clusters(results, width=0.5):
    """Group optima of nearly the same value."""
    groups = []
    for row in results:
        if groups and row["fval"] - groups[-1][0]["fval"] < width:
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def profile(problem, best, index, width=0.4, n=5):
    """Likelihood along one parameter, the others refitted."""
    values = []
    others = [d for d in range(len(best)) if d != index]
    for shift in np.linspace(-width, width, n):
        fixed = float(np.clip(best[index] + shift, problem.lower[index], problem.upper[index]))

        def reduced(free):
            theta = np.array(best, dtype=float)
            theta[others] = free
            theta[index] = fixed
            return problem.objective(theta)

        found = minimize(
            reduced,
            [best[d] for d in others],
            method="L-BFGS-B",
            bounds=[problem.bounds[d] for d in others],
            options={"maxiter": 4},
        )
        values.append((round(fixed, 4), round(float(found.fun), 4)))
    return values


def main():
    begin = time.time()
    objective = Objective(measure())
    problem = Problem(objective, LOWER, UPPER, NAMES)
    print(f"objective at the true parameters {objective(TRUE):.4f}")
    results = multistart(problem, n_starts=12)
    print("rank start       fval calls")
    for rank, row in enumerate(results):
        print(f"{rank:4d} {row['start']:5d} {row['fval']:10.4f} {row['calls']:5d}")
    groups = clusters(results)
    print("clusters", [len(group) for group in groups])
    best = results[0]["x"]
    for name, value, true in zip(NAMES, best, TRUE):
        print(f"{name:8s} {value:+.5f} (true {true:+.5f})")
    curve = profile(problem, best, NAMES.index("k_fb"))
    print("profile k_fb", curve)
    with open("multistart.json", "w") as handle:
        json.dump({"results": results, "profile": curve}, handle, indent=1)
    log.info("%d objective calls in %.1f s", objective.calls, time.time() - begin)


if __name__ == "__main__":
    main()
