"""Synthetic customers: twelve standardised features and a churn flag."""
import numpy as np
import torch

N_FEATURES = 12


def make_customers(n=1500, seed=7):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, N_FEATURES)).astype("float32")
    weights = rng.normal(size=N_FEATURES)
    score = x @ weights + 0.8 * x[:, 0] * x[:, 1] - 0.5 * x[:, 2] ** 2
    y = (score + rng.normal(scale=0.5, size=n) > 0).astype("float32")
    return x, y


def split(x, y, holdout=300):
    """The last rows are the hold-out."""
    train = torch.from_numpy(x[:-holdout]), torch.from_numpy(y[:-holdout])
    test = torch.from_numpy(x[-holdout:]), torch.from_numpy(y[-holdout:])
    return train, test
