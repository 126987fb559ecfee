"""Fault geometry and the stress interaction matrix."""
from dataclasses import dataclass

import numpy as np


@dataclass
class FaultModel:
    xy: np.ndarray
    fault: np.ndarray
    slip_rate: np.ndarray
    strength: np.ndarray
    area: np.ndarray
    greens: np.ndarray

    @property
    def n(self):
        return len(self.fault)

    @classmethod
    def build(cls, p):
        rng = np.random.default_rng(p["sim.model_seed"])
        xy, fault, rate = [], [], []
        for f in range(p["sim.faults"]):
            m = p["sim.elements"]
            start = rng.uniform(-60, 60, 2)
            angle = rng.normal(0.6, 0.25)
            along = np.arange(m) * 3.0
            xy.append(start + np.outer(along, [np.cos(angle), np.sin(angle)]))
            fault += [f] * m
            rate += [rng.uniform(0.01, 0.035)] * m
        xy, fault, rate = np.vstack(xy), np.array(fault), np.array(rate)
        n = len(fault)
        strength = p["sim.friction.strength"] * rng.lognormal(0, 0.25, n)
        d = np.linalg.norm(xy[:, None] - xy[None], axis=-1)
        same = fault[:, None] == fault[None]
        g = np.where(same, 0.42, 0.06) / (1 + (d / 3.0) ** 2)
        np.fill_diagonal(g, -1.0)
        return cls(xy, fault, rate, strength, np.full(n, 3.0 * 12.0), g)
