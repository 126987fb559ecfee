"""Simulated regression data for the trials."""
import sys

import numpy as np

rng = np.random.default_rng(int(sys.argv[2]))
x = rng.normal(size=(900, 16))
w = rng.normal(size=16)
y = x @ w + 0.5 * np.sin(3 * x[:, 0]) + rng.normal(0, 0.7, 900)
np.savez(sys.argv[1], x=x, y=y)
