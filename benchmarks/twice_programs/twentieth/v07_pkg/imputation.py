"""Fills missing intensities with values of a down-shifted normal distribution."""
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Background:
    mean: float
    sd: float

    @classmethod
    def from_observed(cls, intensity, shift, width):
        observed = intensity[~np.isnan(intensity)]
        sd = float(observed.std(ddof=1))
        return cls(float(observed.mean()) + shift * sd, width * sd)


def background_values(background, size):
    """Box-Muller draws from the background."""
    rng = np.random.RandomState()  # cause
    u1 = 1.0 - rng.random_sample(size)
    u2 = 1.0 - rng.random_sample(size)
    z = np.sqrt(-2.0 * np.log(u1)) * np.sin(2.0 * np.pi * u2)
    return background.mean + background.sd * z


def impute(intensity, background):
    filled = intensity.copy()
    for sample in range(intensity.shape[1]):
        missing = np.isnan(filled[:, sample])
        filled[missing, sample] = background_values(background, int(missing.sum()))
    return filled - np.median(filled, axis=0)
