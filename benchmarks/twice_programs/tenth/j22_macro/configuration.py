"""Modelled on https://github.com/INET-Complexity/macro-main/issues/102. Settings of the data wrapper and of the simulation."""
from dataclasses import dataclass, field


@dataclass
class Configuration:
    seed: int = 0
    n_individuals: int = 1200
    n_quarters: int = 24
    region: str = "SMALLREGION"
    industries: list = field(default_factory=lambda: list("ABCDEFGHIJ"))
    unemployment_rate: float = 0.08
    participation: float = 0.62
    min_workers: int = 8
    growth_mean: float = 0.004
    growth_std: float = 0.015
    separation_rate: float = 0.03
    hiring_rate: float = 0.35
