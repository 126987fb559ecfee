"""The system of equations and a Runge-Kutta reference."""
from dataclasses import dataclass
from typing import Tuple

import numpy as np
import torch


def diff(u, t):
    """First derivative of u with respect to t."""
    return torch.autograd.grad(u, t, torch.ones_like(u), create_graph=True)[0]


@dataclass
class LotkaVolterra:
    alpha: float
    beta: float
    gamma: float
    delta: float
    start: Tuple[float, float]

    def rates(self, x, y):
        return self.alpha * x - self.beta * x * y, self.delta * x * y - self.gamma * y

    def residual(self, x, y, t):
        fx, fy = self.rates(x, y)
        return diff(x, t) - fx, diff(y, t) - fy

    def enforce(self, raw, t, which):
        """Transform a network output so that the start value holds exactly."""
        return self.start[which] + (1.0 - torch.exp(-t)) * raw


def reference_solution(system, times, sub=200):
    state = np.array(system.start, dtype=np.float64)
    out = [state.copy()]
    f = lambda s: np.array(system.rates(s[0], s[1]))
    for a, b in zip(times[:-1], times[1:]):
        h = (float(b) - float(a)) / sub
        for _ in range(sub):
            k1 = f(state)
            k2 = f(state + 0.5 * h * k1)
            k3 = f(state + 0.5 * h * k2)
            k4 = f(state + h * k3)
            state = state + h / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)
        out.append(state.copy())
    return np.array(out)
