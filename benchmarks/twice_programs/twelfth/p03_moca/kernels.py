import math

import numpy as np


class Metropolis:
    """Canonical swap moves accepted with the Metropolis criterion."""

    def __init__(self, ensemble, temperature):
        self.ensemble = ensemble
        self.beta = 1.0 / temperature
        self._rng = np.random.default_rng()  # cause
        self.accepted = 0
        self.tried = 0

    def set_temperature(self, temperature):
        self.beta = 1.0 / temperature
        self.accepted = self.tried = 0

    def step(self, occupancy):
        a, b = self._rng.integers(0, self.ensemble.num_sites, size=2)  # cause
        delta = self.ensemble.swap_change(occupancy, a, b)
        self.tried += 1
        if delta <= 0 or self._rng.random() < math.exp(-self.beta * delta):
            occupancy[a], occupancy[b] = occupancy[b], occupancy[a]
            self.accepted += 1
            return delta
        return 0.0

    @property
    def acceptance(self):
        return self.accepted / max(self.tried, 1)
