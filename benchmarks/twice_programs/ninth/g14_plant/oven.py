"""Two-dimensional heat conduction in an oven wall with a heater at one side and a door that opens now and then."""
import numpy as np


class Oven:
    def __init__(self, cells=72, diffusivity=0.18, loss=0.004, seed=0, ambient=20.0):
        self.temp = np.full((cells, cells), ambient)
        self.a, self.loss, self.ambient = diffusivity, loss, ambient
        self.rng = np.random.default_rng(seed)
        self.door = 0

    def step(self, power, substeps=12):
        if self.door == 0 and self.rng.random() < 0.01:
            self.door = int(self.rng.integers(10, 30))
        leak = self.loss * (6.0 if self.door else 1.0)
        self.door = max(0, self.door - 1)
        t = self.temp
        for _ in range(substeps):
            pad = np.pad(t, 1, mode="edge")
            lap = pad[:-2, 1:-1] + pad[2:, 1:-1] + pad[1:-1, :-2] + pad[1:-1, 2:] - 4 * t
            t = t + self.a * lap
            t[:, 0] += 14.0 * power
            t[:, -1] -= leak * (t[:, -1] - self.ambient) * 10
            t[0, :] -= leak * (t[0, :] - self.ambient)
        self.temp = t
        return self.read()

    def read(self):
        c = self.temp.shape[0] // 3
        return float(self.temp[c - 2:c + 3, c - 2:c + 3].mean() + self.rng.normal(0, 0.05))
