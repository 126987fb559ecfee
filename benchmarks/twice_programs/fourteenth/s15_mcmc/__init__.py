from .ensemble import EnsembleSampler
from .kepler import radial_velocity, solve_kepler

__all__ = ["EnsembleSampler", "radial_velocity", "solve_kepler"]
