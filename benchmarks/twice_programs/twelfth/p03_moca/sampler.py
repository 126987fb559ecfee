import numpy as np


class Sampler:
    """Runs a kernel over an occupancy and keeps a thinned trace."""

    def __init__(self, ensemble, kernel):
        self.ensemble, self.kernel = ensemble, kernel
        self.trace = []

    def run(self, occupancy, steps, thin):
        energy = self.ensemble.energy(occupancy)
        trace = []
        for k in range(steps):
            energy += self.kernel.step(occupancy)
            if k % thin == 0:
                trace.append(energy)
        self.trace = np.asarray(trace) / self.ensemble.num_sites
        return occupancy

    def mean_energy(self, discard):
        return float(self.trace[discard:].mean())

    def heat_capacity(self, discard, temperature):
        var = self.trace[discard:].var() * self.ensemble.num_sites
        return float(var / temperature ** 2)
