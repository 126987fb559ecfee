"""The sales history of the chain and the forecast requests."""
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ForecastRequest:
    request_id: int
    store: int
    scale: float
    start: int
    horizon: int
    seed: int


def make_history(n_days, seed):
    """Daily sales with a slow trend, a weekly pattern and noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(n_days)
    weekly = np.array([0.0, -0.05, -0.02, 0.01, 0.12, 0.35, 0.2])
    slope = np.cumsum(rng.normal(0, 2e-5, n_days)) + 4e-4
    level = 5.0 + np.cumsum(slope)
    return np.exp(level + weekly[t % 7] + rng.normal(0, 0.05, n_days))


def make_requests(n_stores, n_cutoffs, train_end, horizon, seed):
    rng = np.random.default_rng([seed, 7])
    scales = rng.lognormal(0.0, 0.4, n_stores)
    requests = []
    for store in range(n_stores):
        starts = train_end + np.sort(rng.choice(140, size=n_cutoffs, replace=False))
        for start in starts:
            requests.append(ForecastRequest(len(requests), store, float(scales[store]), int(start), horizon, seed))
    return requests
