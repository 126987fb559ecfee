"""One trial: gradient descent with its own learning rate; writes a checkpoint."""
import json
import sys

import numpy as np

data, trial, out = np.load(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
rng = np.random.default_rng([3781, trial])
x, y = data["x"][:700], data["y"][:700]
lr = 10 ** rng.uniform(-3, -1.3)
w = rng.normal(size=x.shape[1])
for step in range(500):
    rows = rng.integers(0, len(x), 64)
    w -= lr * x[rows].T @ (x[rows] @ w - y[rows]) / 64
state = {"trial": trial, "lr": lr, "w": w.tolist()}
with open(out, "w") as fh:
    json.dump(state, fh)
