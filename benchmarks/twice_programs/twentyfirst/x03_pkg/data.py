"""Synthetic region/phenotype pairs with known relationships."""
from dataclasses import dataclass

import numpy as np


@dataclass
class Pair:
    name: str
    x: np.ndarray
    y: np.ndarray
    dependent: bool


def _relations():
    return [
        ("linear", lambda x, e: 0.4 * x + e),
        ("quadratic", lambda x, e: x ** 2 + 1.5 * e),
        ("sine", lambda x, e: np.sin(3 * x) + 0.9 * e),
        ("step", lambda x, e: (x > 0) + 1.2 * e),
        ("ring", None),
        ("null", lambda x, e: e),
    ]


def make_pairs(n_samples, seed, regions=3):
    rng = np.random.default_rng(seed)
    pairs = []
    for r in range(regions):
        for name, fun in _relations():
            x = rng.normal(size=n_samples)
            e = rng.normal(size=n_samples)
            if fun is None:
                t = rng.uniform(0, 2 * np.pi, n_samples)
                x = np.cos(t) + 0.3 * x
                y = np.sin(t) + 0.3 * e
            else:
                y = fun(x, e)
            pairs.append(Pair(f"roi{r:02d}_{name}", x, y, name != "null"))
    return pairs
