"""Finds the distribution that fits the measured service times best.

Each candidate of scipy.stats is fitted by maximum likelihood, starting from moment based guesses and
refined by a local search; candidates are then ranked by AIC and by the squared error of the histogram.

Modelled on: https://github.com/cokelaer/fitter/issues/28
"""
import argparse
import csv
import json
import logging
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

log = logging.getLogger("fitter")

CANDIDATES = {
    "gamma": (stats.gamma, 1),
    "lognorm": (stats.lognorm, 1),
    "weibull_min": (stats.weibull_min, 1),
    "burr12": (stats.burr12, 2),
    "exponweib": (stats.exponweib, 2),
    "invgauss": (stats.invgauss, 1),
}


@dataclass
class FitResult:
    name: str
    params: tuple
    loglik: float
    n_eval: int
    sse: float = float("nan")

    @property
    def aic(self):
        return 2 * len(self.params) - 2 * self.loglik


def load_service_times(n, seed):
    rng = np.random.default_rng(seed)
    fast = rng.gamma(2.4, 1.1, int(n * 0.8))
    slow = rng.lognormal(1.9, 0.45, n - len(fast))
    return np.sort(np.concatenate([fast, slow]) + 0.2)


class Fitter:
    def __init__(self, data, bins=60, timeout=0.5, seed=0):
        self.data = data
        self.timeout = timeout
        self.seed = seed
        self.density, edges = np.histogram(data, bins=bins, density=True)
        self.centers = (edges[1:] + edges[:-1]) / 2
        self.results = {}

    def loglik(self, dist, theta):
        shapes, loc, scale = np.exp(theta[:-2]), theta[-2], np.exp(theta[-1])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = dist.logpdf(self.data, *shapes, loc=loc, scale=scale).sum()
        return value if np.isfinite(value) else -1e12

    def refine(self, dist, theta, rng):
        """Random local search with a step size that adapts to success."""
        best = self.loglik(dist, theta)
        step, n_eval = 0.3, 1
        deadline = time.monotonic() + self.timeout  # cause
        while time.monotonic() < deadline:  # cause
            trial = theta + step * rng.standard_normal(len(theta))
            value = self.loglik(dist, trial)
            n_eval += 1
            if value > best:
                theta, best = trial, value
                step = min(1.0, step * 1.4)
            else:
                step = max(1e-4, step * 0.93)
        return theta, best, n_eval

    def fit_one(self, name):
        dist, n_shapes = CANDIDATES[name]
        rng = np.random.default_rng([self.seed, len(name), n_shapes])
        loc0 = self.data.min() - 0.1 * self.data.std()
        theta0 = np.array([0.2] * n_shapes + [loc0, np.log(self.data.std())])
        theta, ll, n_eval = self.refine(dist, theta0, rng)
        params = (*np.exp(theta[:-2]), theta[-2], np.exp(theta[-1]))
        res = FitResult(name, tuple(float(p) for p in params), float(ll), n_eval)
        pdf = np.nan_to_num(dist.pdf(self.centers, *res.params))
        res.sse = float(((pdf - self.density) ** 2).sum())
        return res

    def fit(self):
        for name in CANDIDATES:
            self.results[name] = self.fit_one(name)
            log.info("fitted %s (sse=%.5f)", name, self.results[name].sse)
        return self

    def ranking(self, key="aic"):
        return sorted(self.results.values(), key=lambda r: getattr(r, key))

    def quantiles(self, res, qs=(0.5, 0.9, 0.95, 0.99)):
        dist = CANDIDATES[res.name][0]
        return {f"p{int(q * 100)}": round(float(dist.ppf(q, *res.params)), 5) for q in qs}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--n", type=int, default=4000)
    ap.add_argument("--timeout", type=float, default=0.3, help="seconds per distribution")
    ap.add_argument("--seed", type=int, default=11)
    ap.add_argument("--out", default=".")
    args = ap.parse_args()

    logging.basicConfig(level=logging.INFO, format="%(asctime)s [%(name)s] %(message)s")
    data = load_service_times(args.n, args.seed)
    fitter = Fitter(data, timeout=args.timeout, seed=args.seed).fit()

    out = Path(args.out)
    with open(out / "fits.csv", "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["distribution", "aic", "sse", "evaluations", "params"])
        for r in fitter.ranking():
            w.writerow([r.name, f"{r.aic:.4f}", f"{r.sse:.6f}", r.n_eval,
                        " ".join(f"{p:.6f}" for p in r.params)])
    best = fitter.ranking()[0]
    summary = {"best": best.name, "best_by_sse": fitter.ranking("sse")[0].name,
               "params": [round(p, 6) for p in best.params], "quantiles": fitter.quantiles(best)}
    (out / "best.json").write_text(json.dumps(summary, indent=2))
    for r in fitter.ranking():
        print(f"{r.name:<12} aic {r.aic:10.3f}  sse {r.sse:.5f}")
    print("best:", summary)


if __name__ == "__main__":
    main()
