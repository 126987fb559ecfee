"""Orbit of an exoplanet from radial velocities.

Modelled on https://github.com/dfm/emcee/pull/324
Samples the posterior of a Keplerian orbit with an ensemble of walkers and reports quantiles.
"""
import argparse
import json
import logging
import random
import time
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
from scipy.optimize import minimize

from s15_mcmc import EnsembleSampler, radial_velocity

log = logging.getLogger("rv")
NAMES = ["period", "k", "ecc", "omega", "phase", "offset"]
TRUTH = np.array([17.3, 42.0, 0.23, 0.9, 0.35, 3.0])


@dataclass
class RvConfig:
    seed: int = 0
    observations: int = 45
    error: float = 4.0
    walkers: int = 24
    steps: int = 700
    burn: int = 250


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)


def observe(cfg):
    t = np.sort(np.random.uniform(0, 120, cfg.observations))
    rv = radial_velocity(t, *TRUTH[:5]) + TRUTH[5]
    sigma = cfg.error * np.random.uniform(0.7, 1.4, cfg.observations)
    return t, rv + sigma * np.random.normal(size=len(t)), sigma


def log_prior(theta):
    period, k, ecc, omega, phase, offset = theta
    if not (10 < period < 30 and 0 < k < 200 and 0 <= ecc < 0.8):
        return -np.inf
    if not (-np.pi < omega < np.pi and 0 <= phase < 1 and abs(offset) < 50):
        return -np.inf
    return -np.log(k) - 2.0 * ecc


def log_prob(theta, t, rv, sigma):
    lp = log_prior(theta)
    if not np.isfinite(lp):
        return -np.inf
    resid = (rv - theta[5] - radial_velocity(t, *theta[:5])) / sigma
    return lp - 0.5 * float(resid @ resid)


def find_start(t, rv, sigma):
    def loss(theta):
        value = -log_prob(theta, t, rv, sigma)
        return value if np.isfinite(value) else 1e10

    res = minimize(loss, TRUTH * 1.01, method="Nelder-Mead", options={"maxiter": 1500})
    log.info("maximum a posteriori %.3f after %d evaluations", -res.fun, res.nfev)
    return res.x


def initial_walkers(centre, cfg):
    spread = np.array([1e-2, 0.5, 1e-2, 5e-2, 5e-3, 0.3])
    walkers = centre + spread * np.random.normal(size=(cfg.walkers, len(centre)))
    walkers[:, 2] = np.clip(walkers[:, 2], 1e-3, 0.79)
    walkers[:, 4] = np.clip(walkers[:, 4], 1e-3, 0.999)
    return walkers


def summarise(samples):
    rows = {}
    for k, name in enumerate(NAMES):
        lo, mid, hi = np.percentile(samples[:, k], [16, 50, 84])
        rows[name] = {"median": round(float(mid), 6), "minus": round(float(mid - lo), 6),
                      "plus": round(float(hi - mid), 6)}
    return rows


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=RvConfig.steps)
    ap.add_argument("--seed", type=int, default=RvConfig.seed)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    cfg = RvConfig(steps=args.steps, seed=args.seed)
    set_seed(cfg.seed)
    t, rv, sigma = observe(cfg)
    p0 = initial_walkers(find_start(t, rv, sigma), cfg)
    sampler = EnsembleSampler(cfg.walkers, len(NAMES), log_prob, args=(t, rv, sigma))
    t0 = time.perf_counter()
    sampler.run_mcmc(p0, cfg.steps)
    log.info("sampled in %.2f s", time.perf_counter() - t0)
    samples = sampler.get_chain(discard=cfg.burn, thin=2, flat=True)
    summary = summarise(samples)
    summary["acceptance"] = round(float(sampler.acceptance_fraction.mean()), 5)
    with h5py.File("chain.h5", "w") as fh:
        fh["samples"] = samples
        fh["rv"] = np.column_stack([t, rv, sigma])
    Path("orbit.json").write_text(json.dumps(summary, indent=1))
    print(json.dumps(summary, indent=1))


if __name__ == "__main__":
    main()
