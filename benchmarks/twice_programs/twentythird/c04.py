"""Importance sampling for a toy gravitational-wave parameter estimation.

Draws proposal samples of (mass, distance) for a chirp signal in noise,
reconstructs the phase of each sample from its synthetic phase posterior in a
pool of workers, computes importance weights, and reports the effective sample
size, the evidence and weighted quantiles.

Modelled on: https://github.com/dingo-gw/dingo/issues/408
"""
import json
import logging
import multiprocessing
import random
import time

import numpy as np

logger = logging.getLogger("importance")

N_SAMPLES = 1600
N_PHASE = 301
N_FREQ = 400
NUM_PROCESSES = 2
SEED = 150914


class Signal:
    """Frequency-domain chirp with white noise of unit variance."""

    def __init__(self, seed):
        self.f = np.linspace(20, 512, N_FREQ)
        rng = np.random.default_rng(seed)
        noise = rng.normal(size=N_FREQ) + 1j * rng.normal(size=N_FREQ)
        self.truth = {"mass": 28.0, "distance": 410.0, "phase": 1.3}
        self.data = self.waveform(**self.truth) + noise

    def waveform(self, mass, distance, phase):
        amplitude = 7.0e4 / distance * (self.f / 20.0) ** (-7.0 / 6.0) * (mass / 30.0) ** (5.0 / 6.0)
        psi = 60.0 * (30.0 / mass) ** (5.0 / 3.0) * (self.f / 20.0) ** (-5.0 / 3.0)
        return 0.02 * amplitude * np.exp(1j * (psi + 2 * phase))

    def log_likelihood(self, mass, distance, phase):
        h = self.waveform(mass, distance, phase)
        return -0.5 * np.sum(np.abs(self.data - h) ** 2)

    def inner_products(self, mass, distance):
        h = self.waveform(mass, distance, 0.0)
        return np.sum(np.conj(h) * self.data), np.sum(np.abs(h) ** 2)


class Proposal:
    """Gaussian stand-in for the neural posterior estimate."""

    mean = np.array([28.0, 410.0])
    std = np.array([0.25, 30.0])

    def sample(self, n, rng):
        theta = self.mean + self.std * rng.normal(size=(n, 2))
        theta[:, 1] = np.clip(theta[:, 1], 50.0, 2000.0)
        return theta

    def log_prob(self, theta):
        z = (theta - self.mean) / self.std
        return -0.5 * np.sum(z ** 2, axis=1) - np.log(self.std).sum() - np.log(2 * np.pi)


_signal = None


def _get_signal():
    global _signal
    if _signal is None:
        _signal = Signal(SEED)
    return _signal


def sample_synthetic_phase(theta):
    """Tabulate the phase posterior of one sample and draw from its inverse CDF."""
    signal = _get_signal()
    overlap, norm = signal.inner_products(*theta)
    grid = np.linspace(0, 2 * np.pi, N_PHASE)
    log_post = np.real(overlap * np.exp(-2j * grid)) - 0.5 * norm
    density = np.exp(log_post - log_post.max())
    steps = 0.5 * (density[1:] + density[:-1]) * np.diff(grid)
    cdf = np.concatenate([[0.0], np.cumsum(steps)])
    total = cdf[-1]
    phase = np.interp(np.random.uniform(0, total), cdf, grid)  # cause
    log_prob = np.log(np.interp(phase, grid, density) / total)
    return phase, log_prob


def likelihood_task(args):
    return _get_signal().log_likelihood(*args)


def apply_multi(function, inputs, num_processes):
    context = multiprocessing.get_context("spawn")
    with context.Pool(num_processes) as pool:  # cause
        return pool.map(function, inputs, chunksize=50)


def weighted_quantiles(values, weights, q):
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order])
    return np.interp(q, cumulative / cumulative[-1], values[order])


def summarize(samples, log_weights):
    shift = log_weights.max()
    weights = np.exp(log_weights - shift)
    ess = weights.sum() ** 2 / np.sum(weights ** 2)
    result = {
        "n_eff": float(ess),
        "efficiency": float(ess / len(weights)),
        "log_evidence": float(np.log(weights.mean()) + shift),
    }
    for i, name in enumerate(("mass", "distance", "phase")):
        result[name] = [float(v) for v in weighted_quantiles(samples[:, i], weights, [0.05, 0.5, 0.95])]
    return result


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    random.seed(SEED)
    np.random.seed(SEED)
    rng = np.random.default_rng(SEED)
    proposal = Proposal()
    theta = proposal.sample(N_SAMPLES, rng)
    started = time.time()
    phases = apply_multi(sample_synthetic_phase, [tuple(t) for t in theta], NUM_PROCESSES)
    logger.info("synthetic phase took %.1f s", time.time() - started)
    phase = np.array([p for p, _ in phases])
    log_q = proposal.log_prob(theta) + np.array([lp for _, lp in phases])
    samples = np.column_stack([theta, phase])
    started = time.time()
    log_l = np.array([likelihood_task(tuple(s)) for s in samples])
    logger.info("likelihoods took %.1f s", time.time() - started)
    log_prior = 2 * np.log(samples[:, 1]) - np.log(2 * np.pi)
    log_weights = log_l + log_prior - log_q
    result = summarize(samples, log_weights)
    with open("result.json", "w") as f:
        json.dump(result, f, indent=2)
    np.savetxt("samples.csv", np.column_stack([samples, log_weights]), delimiter=",",
               header="mass,distance,phase,log_weight", comments="")
    print(f"effective samples {result['n_eff']:.3f} of {N_SAMPLES}")
    print(f"log evidence {result['log_evidence']:.5f}")
    for name in ("mass", "distance", "phase"):
        low, mid, high = result[name]
        print(f"{name:9s} {mid:10.5f} [{low:.5f}, {high:.5f}]")


if __name__ == "__main__":
    main()
