from .lake import Lake
from .sensors import simulate_day

__all__ = ["Lake", "simulate_day"]
