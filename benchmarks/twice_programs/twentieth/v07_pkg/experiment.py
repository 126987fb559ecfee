"""A simulated two-condition experiment."""
from dataclasses import dataclass

import numpy as np


@dataclass
class Experiment:
    names: list
    intensity: np.ndarray
    condition: np.ndarray
    changing: np.ndarray


def simulate_experiment(n_proteoforms, n_replicates, seed):
    """log2 intensities; weak signals are missing more often."""
    rng = np.random.default_rng(seed)
    condition = np.repeat([0, 1], n_replicates)
    base = rng.normal(24.0, 2.2, n_proteoforms)
    changing = rng.random(n_proteoforms) < 0.12
    effect = np.where(changing, rng.normal(0, 1.8, n_proteoforms), 0.0)
    sample_shift = rng.normal(0, 0.15, 2 * n_replicates)
    sd = 0.25 + rng.gamma(2.0, 0.12, n_proteoforms)
    y = base[:, None] + effect[:, None] * condition + sample_shift
    y += rng.normal(size=y.shape) * sd[:, None]
    lost = rng.random(y.shape) < 1 / (1 + np.exp(1.3 * (y - 21.5)))
    lost |= rng.random(y.shape) < 0.03
    y[lost] = np.nan
    kept = (~np.isnan(y)).sum(axis=1) >= 3
    names = [f"PF{i:05d}_{'ac' if i % 7 == 0 else 'unmod'}" for i in range(n_proteoforms)]
    return Experiment([n for n, k in zip(names, kept) if k], y[kept], condition, changing[kept])
