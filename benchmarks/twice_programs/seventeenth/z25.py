"""Fit a thin-film reflectivity profile with a DREAM-style population sampler.

Modelled on https://github.com/bumps/bumps/issues/97

The curve of a two-layer film is simulated with counting noise, chains take
differential-evolution steps from an archive of past states in a compiled
kernel, and the posterior is summarised.
"""
import csv
import json
import logging
import sys
import time
from pathlib import Path

import numpy as np
from numba import njit, prange

log = logging.getLogger("dream")

NAMES = ("rho_1", "thick_1", "rho_2", "thick_2", "sigma", "rho_sub", "background")
LOW = np.array([1.0, 20.0, 2.0, 40.0, 1.0, 1.0, -8.0])
HIGH = np.array([6.0, 90.0, 8.0, 160.0, 12.0, 3.5, -5.0])
TRUE = np.array([3.47, 48.0, 4.66, 95.0, 4.2, 2.07, -6.3])
JITTER = 1e-3
CROSSOVER = np.array([0.25, 0.5, 0.75, 1.0])


@njit
def reflect(par, q, out):
    """Two layers on a substrate, recursion from the substrate upwards."""
    rho = np.array([0.0, par[0], par[2], par[5]])
    thick = np.array([0.0, par[1], par[3], 0.0])
    sig2 = par[4] * par[4]
    base = 10.0 ** par[6]
    for i in range(len(q)):
        kz0 = 0.5 * q[i]
        r = 0.0 + 0.0j
        k_below = np.sqrt(kz0 * kz0 - 4e-6 * np.pi * rho[3] + 0.0j)
        for layer in range(2, -1, -1):
            k_here = np.sqrt(kz0 * kz0 - 4e-6 * np.pi * rho[layer] + 0.0j)
            f = (k_here - k_below) / (k_here + k_below) * np.exp(-2.0 * k_here * k_below * sig2)
            phase = np.exp(2.0j * k_below * thick[layer + 1]) if layer < 2 else 1.0 + 0.0j
            r = (f + r * phase) / (1.0 + f * r * phase)
            k_below = k_here
        out[i] = r.real * r.real + r.imag * r.imag + base


@njit
def nllf(par, q, y, dy, low, high, work):
    for j in range(len(par)):
        if par[j] < low[j] or par[j] > high[j]:
            return np.inf
    reflect(par, q, work)
    total = 0.0
    for i in range(len(q)):
        z = (y[i] - work[i]) / dy[i]
        total += 0.5 * z * z
    return total


@njit
def set_seed(seed):
    np.random.seed(seed)


@njit(parallel=True)
def advance(pop, value, archive, mask, gamma, logu, span, q, y, dy, low, high, kept):
    """Run every chain for one block against a frozen archive."""
    steps, n, d = mask.shape
    m = archive.shape[0]
    for k in prange(n):
        work = np.empty(len(q))
        trial = np.empty(d)
        for g in range(steps):
            a, b = np.random.randint(m), np.random.randint(m)  # cause
            for j in range(d):
                jump = gamma[g, k] * (archive[a, j] - archive[b, j])
                noise = span[j] * np.random.normal(0.0, 1e-3)  # cause
                trial[j] = pop[k, j] + mask[g, k, j] * jump + noise
            new = nllf(trial, q, y, dy, low, high, work)
            if logu[g, k] < value[k] - new:
                value[k] = new
                for j in range(d):
                    pop[k, j] = trial[j]
                kept[k] += 1


@njit
def evaluate(points, q, y, dy, low, high, out):
    work = np.empty(len(q))
    for k in range(points.shape[0]):
        out[k] = nllf(points[k], q, y, dy, low, high, work)


def simulate(rng, n=60):
    q = np.geomspace(0.008, 0.22, n)
    clean = np.empty(n)
    reflect(TRUE, q, clean)
    dy = 0.04 * clean + 2e-8
    return q, clean + dy * rng.standard_normal(n), dy


class Dream:
    def __init__(self, data, rng, chains=32, block=10):
        self.data = data
        self.rng = rng
        self.block = block
        self.pop = LOW + (HIGH - LOW) * rng.random((chains, len(LOW)))
        self.archive = LOW + (HIGH - LOW) * rng.random((10 * len(LOW), len(LOW)))
        self.value = np.empty(chains)
        evaluate(self.pop, *data, LOW, HIGH, self.value)

    def generations(self):
        shape = (self.block, len(self.pop))
        rate = CROSSOVER[self.rng.integers(0, len(CROSSOVER), shape)]
        mask = self.rng.random((*shape, len(LOW))) < rate[:, :, None]
        gamma = 1.68 / np.sqrt(np.maximum(mask.sum(axis=2), 1))
        gamma[self.rng.random(shape) < 0.1] = 1.0
        logu = np.log(self.rng.random(shape))
        kept = np.zeros(len(self.pop), dtype=np.int64)
        advance(self.pop, self.value, self.archive, mask, gamma, logu,  # cause
                JITTER * (HIGH - LOW), *self.data, LOW, HIGH, kept)
        self.archive = np.concatenate([self.archive, self.pop])[-60 * len(LOW):]
        return kept.sum() / mask[:, :, 0].size

    def reset_outliers(self):
        q1, q3 = np.percentile(self.value, [25, 75])
        bad = np.flatnonzero(self.value > q3 + 2 * (q3 - q1))
        good = np.argsort(self.value, kind="stable")[: len(self.pop) // 2]
        for k in bad:
            src = good[self.rng.integers(len(good))]
            self.pop[k], self.value[k] = self.pop[src], self.value[src]
        return len(bad)

    def run(self, burn, blocks):
        draws, logp, rate = [], [], 0.0
        for g in range(1, burn + blocks + 1):
            rate += self.generations()
            if g <= burn and g % 8 == 0:
                self.reset_outliers()
            if g > burn:
                draws.append(self.pop.copy())
                logp.append(self.value.copy())
            if g % 30 == 0:
                log.info("block %3d  best %.4f  acceptance %.3f", g, self.value.min(), rate / 30)
                rate = 0.0
        return np.stack(draws), np.stack(logp)


def gelman_rubin(draws):
    n, m, _ = draws.shape
    within = draws.var(axis=0, ddof=1).mean(axis=0)
    between = n * draws.mean(axis=0).var(axis=0, ddof=1)
    return np.sqrt(((n - 1) / n * within + between / n) / within)


def summarise(draws, logp):
    flat = draws.reshape(-1, draws.shape[-1])
    best = flat[np.argmin(logp.ravel())]
    rhat = gelman_rubin(draws)
    out = []
    for j, name in enumerate(NAMES):
        lo, mid, hi = np.quantile(flat[:, j], [0.16, 0.5, 0.84])
        out.append({"name": name, "true": float(TRUE[j]), "best": float(best[j]),
                    "median": float(mid), "low": float(lo), "high": float(hi),
                    "rhat": float(rhat[j])})
    return out


def main():
    logging.basicConfig(level=logging.INFO, stream=sys.stdout,
                        format="%(asctime)s %(name)s: %(message)s")
    seed = 97
    np.random.seed(seed)
    set_seed(seed)
    rng = np.random.default_rng(seed)
    out = Path("fit")
    out.mkdir(exist_ok=True)
    log.info("storing results in %s", out.resolve())
    began = time.perf_counter()
    sampler = Dream(simulate(rng), rng)
    log.info("kernels ready after %.1f s", time.perf_counter() - began)
    draws, logp = sampler.run(burn=100, blocks=80)
    table = summarise(draws, logp)

    with open(out / "posterior.csv", "w", newline="") as fh:
        writer = csv.DictWriter(fh, fieldnames=list(table[0]))
        writer.writeheader()
        writer.writerows(table)
    (out / "fit.json").write_text(json.dumps({
        "nllf": float(logp.min()), "samples": int(draws.shape[0] * draws.shape[1]),
        "archive": len(sampler.archive)}, indent=1))
    for row in table:
        print(f"{row['name']:11s} true {row['true']:8.3f}  median {row['median']:9.4f}  "
              f"[{row['low']:.4f}, {row['high']:.4f}]  rhat {row['rhat']:.3f}")
    print(f"chisq {2 * logp.min() / (60 - len(NAMES)):.5f}")


if __name__ == "__main__":
    main()
