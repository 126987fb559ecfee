"""One chronological sample of the system."""
import numpy as np


def sequential_sample(system, rng):
    """Unserved energy per hour of one sampled year."""
    up = rng.random(len(system.capacity)) < system.availability()
    unserved = np.zeros(system.hours)
    for hour in range(system.hours):
        u = rng.random(len(up))
        up = np.where(up, u >= system.fail, u < system.repair)
        available = system.capacity[up].sum()
        if available < system.load[hour]:
            unserved[hour] = system.load[hour] - available
    return unserved
