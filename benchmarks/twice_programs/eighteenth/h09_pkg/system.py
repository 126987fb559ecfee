"""Generating units and the hourly load."""
from dataclasses import dataclass

import numpy as np


@dataclass
class System:
    capacity: np.ndarray  # MW per unit
    fail: np.ndarray      # probability per hour to fail
    repair: np.ndarray    # probability per hour to come back
    load: np.ndarray      # MW per hour

    @property
    def hours(self):
        return len(self.load)

    def availability(self):
        return self.repair / (self.repair + self.fail)


def build_system(hours, seed, n_units=26):
    rng = np.random.default_rng(seed)
    capacity = rng.choice([20.0, 50.0, 76.0, 100.0, 155.0, 197.0], n_units)
    mttf = rng.uniform(250, 1200, n_units)
    mttr = rng.uniform(20, 90, n_units)
    h = np.arange(hours)
    shape = 0.72 + 0.16 * np.sin((h % 24 - 8) / 24 * 2 * np.pi) + 0.05 * np.sin(h / 168 * 2 * np.pi)
    load = capacity.sum() * 0.92 * (shape + rng.normal(0, 0.012, hours))
    return System(capacity, 1 / mttf, 1 / mttr, load)
