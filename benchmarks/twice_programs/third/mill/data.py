"""Synthetic data sets with a fixed generator."""
import numpy as np

WORDS = "amber birch cedar dune ember fjord grove heath inlet juniper kelp larch moss nettle oak pine quartz reed slate thyme".split()

def sensors(rows=240, columns=8, seed=11):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, columns)).astype(np.float32)
    w = rng.normal(size=(columns, 1)).astype(np.float32)
    y = np.tanh(x @ w) + 0.1 * rng.normal(size=(rows, 1)).astype(np.float32)
    return x, y.astype(np.float32)

def reviews(count=80, seed=12):
    rng = np.random.default_rng(seed)
    return [{"text": " ".join(rng.choice(WORDS, 6)), "label": int(rng.integers(3)), "id": n} for n in range(count)]

def images(count=48, size=12, seed=13):
    rng = np.random.default_rng(seed)
    return rng.random((count, 1, size, size)).astype(np.float32), rng.integers(0, 4, count)
