"""Nested sampling of a spectral line model.

Simulates a noisy spectrum with one Gaussian line, runs a small nested sampler
with uniform and normal priors over amplitude, centre, width and offset, and
reports the evidence and the posterior of each parameter.

Modelled on: https://github.com/mj-will/nessai/pull/437
"""
import json
import logging
from dataclasses import dataclass

import numpy as np
from scipy import stats

log = logging.getLogger("line")


@dataclass
class Spectrum:
    x: np.ndarray
    y: np.ndarray
    noise: float


def simulate_spectrum(rng, points=60, noise=0.35):
    x = np.linspace(-5, 5, points)
    y = line_model(x, 2.2, 0.7, 0.8, 0.3) + rng.normal(0, noise, points)
    return Spectrum(x, y, noise)


def line_model(x, amplitude, centre, width, offset):
    return offset + amplitude * np.exp(-0.5 * ((x - centre) / width) ** 2)


class LineModel:
    """Priors and likelihood."""

    names = ("amplitude", "centre", "width", "offset")

    def __init__(self, spectrum):
        self.spectrum = spectrum
        self.priors = {
            "amplitude": stats.uniform(0, 6),
            "centre": stats.uniform(-4, 8),
            "width": stats.uniform(0.2, 2.3),
            "offset": stats.norm(0, 1),
        }

    def new_point(self, count=1):
        """Draw points from the prior."""
        columns = [self.priors[name].rvs(size=count) for name in self.names]  # cause
        return np.stack(columns, axis=1)

    def log_prior(self, theta):
        return sum(self.priors[n].logpdf(t) for n, t in zip(self.names, theta))

    def in_bounds(self, theta):
        a, c, w, _ = theta
        return 0 < a < 6 and -4 < c < 4 and 0.2 < w < 2.5

    def log_likelihood(self, theta):
        s = self.spectrum
        residual = (s.y - line_model(s.x, *theta)) / s.noise
        return -0.5 * float(residual @ residual) - len(s.x) * np.log(s.noise * np.sqrt(2 * np.pi))


class NestedSampler:
    def __init__(self, model, live, rng):
        self.model = model
        self.rng = rng
        self.live = model.new_point(live)
        self.logl = np.array([model.log_likelihood(t) for t in self.live])
        self.dead = []
        self.evaluations = live

    def _walk(self, start, threshold, steps=18):
        """Random walk inside the likelihood contour."""
        scale = self.live.std(axis=0) * 0.5 + 1e-6
        here = start.copy()
        logl = self.model.log_likelihood(here)
        for _ in range(steps):
            trial = here + scale * self.rng.normal(size=len(here))
            if not self.model.in_bounds(trial):
                continue
            ratio = -0.5 * (trial[3] ** 2 - here[3] ** 2)
            if np.log(self.rng.random()) > ratio:
                continue
            value = self.model.log_likelihood(trial)
            self.evaluations += 1
            if value > threshold:
                here, logl = trial, value
        return here, logl

    def run(self, tolerance=0.05, limit=6000):
        count = len(self.live)
        logz, logx = -np.inf, 0.0
        shrink = np.log1p(-np.exp(-1.0 / count))
        for iteration in range(limit):
            worst = int(np.argmin(self.logl))
            weight = self.logl[worst] + logx + shrink
            logz = np.logaddexp(logz, weight)
            self.dead.append((weight, self.live[worst].copy()))
            threshold = self.logl[worst]
            seed = int(self.rng.integers(count))
            self.live[worst], self.logl[worst] = self._walk(self.live[seed], threshold)
            logx -= 1.0 / count
            if np.logaddexp(logz, self.logl.max() + logx) - logz < tolerance:
                break
        log.info("stopped after %d iterations", iteration + 1)
        rest = self.logl + logx - np.log(count)
        logz = np.logaddexp(logz, np.logaddexp.reduce(rest))
        self.dead += list(zip(rest, self.live))
        return logz


def posterior(dead, rng, size=1500):
    weights = np.array([w for w, _ in dead])
    weights = np.exp(weights - weights.max())
    picks = rng.choice(len(dead), size=size, p=weights / weights.sum())
    return np.array([dead[i][1] for i in picks])


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    rng = np.random.default_rng(1234)
    spectrum = simulate_spectrum(rng)
    model = LineModel(spectrum)
    sampler = NestedSampler(model, live=150, rng=rng)
    logz = sampler.run()
    samples = posterior(sampler.dead, rng)
    print(f"log evidence: {logz:.4f} ({sampler.evaluations} evaluations)")
    summary = {"log_evidence": round(float(logz), 6)}
    for name, column in zip(model.names, samples.T):
        low, mid, high = np.percentile(column, [16, 50, 84])
        print(f"{name:10s} {mid:8.4f} (+{high - mid:.4f} -{mid - low:.4f})")
        summary[name] = [round(float(v), 6) for v in (low, mid, high)]
    with open("result.json", "w") as handle:
        json.dump(summary, handle, indent=1)
    np.savetxt("posterior.txt", samples, fmt="%.6f", header=" ".join(model.names))


if __name__ == "__main__":
    main()
