"""Track-finding performance of a toy silicon detector.

Events are generated and reconstructed by a pool of workers; the performance
writer collects efficiencies, pulls and residuals of all events.
Writes performance.json, residuals.npz and event_summary.csv.
Modelled on: https://github.com/acts-project/acts/issues/1657
"""
import argparse
import csv
import json
import logging
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

import numpy as np

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(threadName)s %(message)s")
log = logging.getLogger("reco")

LAYERS = np.array([32.0, 72.0, 116.0, 172.0, 260.0, 360.0, 500.0, 660.0])  # mm
RESOLUTION = 0.02  # mm
FIELD = 2.0  # T


@dataclass
class RecoEvent:
    number: int
    n_particles: int
    n_tracks: int
    matched: int
    residuals: np.ndarray
    pulls: np.ndarray


class EventGenerator:
    def __init__(self, mean_multiplicity, seed):
        self.mean = mean_multiplicity
        self.seed = seed

    def generate(self, number):
        """Particles and their hits on the layers of one event."""
        rng = np.random.default_rng([self.seed, number])
        n = max(3, rng.poisson(self.mean))
        phi = rng.uniform(-np.pi, np.pi, n)
        q_over_pt = rng.choice([-1.0, 1.0], n) / rng.lognormal(1.0, 0.7, n).clip(0.6, 60)
        d0 = rng.normal(0.0, 0.05, n)
        bend = 0.15e-3 * FIELD * q_over_pt  # half curvature, per mm
        hits_phi = phi[:, None] - bend[:, None] * LAYERS + d0[:, None] / LAYERS
        hits_phi += rng.normal(0.0, RESOLUTION, hits_phi.shape) / LAYERS
        efficient = rng.random(hits_phi.shape) < 0.98
        return np.column_stack([phi, q_over_pt, d0]), hits_phi, efficient


class Reconstruction:
    """Least-squares fit of the linearised helix on the hits of each particle."""

    def fit(self, hits_phi, efficient):
        fitted = np.full((len(hits_phi), 3), np.nan)
        sigma = np.full((len(hits_phi), 3), np.nan)
        design_all = np.column_stack([np.ones_like(LAYERS), -0.15e-3 * FIELD * LAYERS, 1.0 / LAYERS])
        weight_all = LAYERS / RESOLUTION
        for i, (meas, ok) in enumerate(zip(hits_phi, efficient)):
            if ok.sum() < 5:
                continue
            design = design_all[ok] * weight_all[ok, None]
            cov = np.linalg.inv(design.T @ design)
            fitted[i] = cov @ design.T @ (meas[ok] * weight_all[ok])
            sigma[i] = np.sqrt(np.diag(cov))
        return fitted, sigma

    def __call__(self, generator, number):
        truth, hits_phi, efficient = generator.generate(number)
        fitted, sigma = self.fit(hits_phi, efficient)
        found = ~np.isnan(fitted[:, 0])
        residuals = fitted[found] - truth[found]
        pulls = residuals / sigma[found]
        matched = int((np.abs(pulls) < 4).all(axis=1).sum())
        return RecoEvent(number, len(truth), int(found.sum()), matched, residuals, pulls)


class RunningMoments:
    """Mean and variance of a stream, with a forgetting alignment estimate."""

    def __init__(self, width):
        self.n = 0
        self.mean = np.zeros(width)
        self.m2 = np.zeros(width)
        self.alignment = np.zeros(width)

    def add(self, rows):
        for row in rows:
            self.n += 1
            delta = row - self.mean
            self.mean += delta / self.n
            self.m2 += delta * (row - self.mean)
        self.alignment += 0.05 * (rows.mean(axis=0) - self.alignment)

    @property
    def std(self):
        return np.sqrt(self.m2 / max(1, self.n - 1))


class PerformanceWriter:
    def __init__(self, bins=60):
        self.residual = RunningMoments(3)
        self.pull = RunningMoments(3)
        self.edges = np.linspace(-5, 5, bins + 1)
        self.histogram = np.zeros((3, bins), dtype=np.int64)
        self.kept = []
        self.rows = []

    def write(self, event):
        self.residual.add(event.residuals)
        self.pull.add(event.pulls)
        for k in range(3):
            self.histogram[k] += np.histogram(event.pulls[:, k], bins=self.edges)[0]
        if len(self.kept) < 40:
            self.kept.append(event.residuals[:20])
        self.rows.append([event.number, event.n_particles, event.n_tracks, event.matched])

    def finish(self):
        particles = sum(r[1] for r in self.rows)
        tracks = sum(r[2] for r in self.rows)
        matched = sum(r[3] for r in self.rows)
        names = ("phi", "q_over_pt", "d0")
        result = {
            "events": len(self.rows),
            "efficiency": tracks / particles,
            "purity": matched / tracks,
            "parameters": {
                name: {
                    "bias": float(self.residual.mean[k]),
                    "resolution": float(self.residual.std[k]),
                    "pull_mean": float(self.pull.mean[k]),
                    "pull_width": float(self.pull.std[k]),
                    "alignment": float(self.residual.alignment[k]),
                }
                for k, name in enumerate(names)
            },
        }
        with open("performance.json", "w") as fh:
            json.dump(result, fh, indent=2)
        np.savez("residuals.npz", sample=np.concatenate(self.kept), pulls=self.histogram, edges=self.edges)
        with open("event_summary.csv", "w", newline="") as fh:
            writer = csv.writer(fh)
            writer.writerow(["event", "particles", "tracks", "matched"])
            writer.writerows(sorted(self.rows))
        return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=500)
    parser.add_argument("--multiplicity", type=float, default=150.0)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=42)
    args = parser.parse_args()

    started = time.time()
    generator = EventGenerator(args.multiplicity, args.seed)
    reconstruct = Reconstruction()
    writer = PerformanceWriter()
    with ThreadPoolExecutor(max_workers=args.workers, thread_name_prefix="worker") as pool:
        futures = [pool.submit(reconstruct, generator, number) for number in range(args.events)]
        for future in as_completed(futures):  # cause
            event = future.result()
            writer.write(event)
            if len(writer.rows) % 100 == 0:
                log.info("%d events written", len(writer.rows))
    result = writer.finish()
    print(f"efficiency {result['efficiency']:.6f} purity {result['purity']:.6f}")
    for name, p in result["parameters"].items():
        print(f"{name:<10} resolution {p['resolution']:.10f} pull width {p['pull_width']:.8f} alignment {p['alignment']:+.10f}")
    log.info("processed %d events in %.1f s", args.events, time.time() - started)


if __name__ == "__main__":
    main()
