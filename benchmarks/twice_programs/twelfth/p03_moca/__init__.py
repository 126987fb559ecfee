"""Lattice Monte Carlo building blocks."""
from .ensemble import BinaryEnsemble
from .kernels import Metropolis
from .sampler import Sampler

__all__ = ["BinaryEnsemble", "Metropolis", "Sampler"]
