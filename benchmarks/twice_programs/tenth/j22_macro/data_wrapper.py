"""Modelled on https://github.com/INET-Complexity/macro-main/issues/102. Collects every input that the simulation starts from."""
from dataclasses import dataclass

import numpy as np
import pandas as pd

from . import readers
from . import synthetic_population as sp


@dataclass
class DataWrapper:
    individuals: pd.DataFrame
    shares: pd.Series
    productivity: pd.Series
    io_matrix: pd.DataFrame
    moved: list

    @classmethod
    def from_config(cls, cfg):
        np.random.seed(cfg.seed)
        rng = np.random.default_rng(cfg.seed)
        people = readers.read_individuals(cfg, rng)
        shares = readers.read_employment_shares(cfg)
        productivity = readers.read_productivity(cfg)
        people = sp.assign_industries(people, shares, rng)
        people, moved = sp.ensure_minimum_workers_in_industries(people, cfg.industries, cfg.min_workers)
        people = sp.form_households(people, rng)
        people = sp.scale_wages(people, productivity)
        return cls(people, shares, productivity, readers.read_io_matrix(cfg, rng), moved)
