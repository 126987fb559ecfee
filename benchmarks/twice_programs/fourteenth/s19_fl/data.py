import numpy as np
import torch
from torch.utils.data import TensorDataset


def synthetic_digits(n, seed, classes=5, features=64):
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(1).normal(size=(classes, features))
    y = rng.integers(0, classes, n)
    x = centres[y] + rng.normal(scale=2.2, size=(n, features))
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y))


def partition_dirichlet(dataset, clients, alpha, seed):
    rng = np.random.default_rng(seed)
    labels = dataset.tensors[1].numpy()
    parts = [[] for _ in range(clients)]
    for c in np.unique(labels):
        idx = rng.permutation(np.flatnonzero(labels == c))
        cuts = (np.cumsum(rng.dirichlet(np.full(clients, alpha))) * len(idx)).astype(int)[:-1]
        for k, piece in enumerate(np.split(idx, cuts)):
            parts[k].extend(piece.tolist())
    return [sorted(p) for p in parts]
