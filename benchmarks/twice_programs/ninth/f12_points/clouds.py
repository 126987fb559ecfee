"""Noisy samples of simple solids."""
import numpy as np
import torch
from torch.utils.data import Dataset

KINDS = ["sphere", "cube", "cylinder", "cone", "torus"]


def sample(kind, n, rng):
    a = rng.uniform(0, 2 * np.pi, n)
    b = rng.uniform(-1, 1, n)
    if kind == "sphere":
        r = np.sqrt(1 - b ** 2)
        return np.stack([r * np.cos(a), r * np.sin(a), b], 1)
    if kind == "cube":
        p = rng.uniform(-0.8, 0.8, (n, 3))
        p[np.arange(n), rng.integers(0, 3, n)] = rng.choice([-0.8, 0.8], n)
        return p
    if kind == "cylinder":
        return np.stack([0.8 * np.cos(a), 0.8 * np.sin(a), b], 1)
    if kind == "cone":
        r = (1 - b) / 2
        return np.stack([r * np.cos(a), r * np.sin(a), b], 1)
    c = rng.uniform(0, 2 * np.pi, n)
    r = 0.75 + 0.3 * np.cos(c)
    return np.stack([r * np.cos(a), r * np.sin(a), 0.3 * np.sin(c)], 1)


class CloudDataset(Dataset):
    def __init__(self, count, points, seed, augment):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, len(KINDS), count)
        self.clouds = [sample(KINDS[k], points, rng) + rng.normal(0, 0.12, (points, 3))
                       for k in self.labels]
        self.augment = augment

    def __len__(self):
        return len(self.clouds)

    def jitter(self, p):
        t = np.random.uniform(0, 2 * np.pi)
        rot = np.array([[np.cos(t), -np.sin(t), 0], [np.sin(t), np.cos(t), 0], [0, 0, 1]])
        p = p @ rot.T * np.random.uniform(0.8, 1.25, size=3)
        return p + np.clip(0.02 * np.random.randn(*p.shape), -0.06, 0.06)

    def __getitem__(self, i):
        p = self.clouds[i]
        if self.augment:
            p = self.jitter(p)
        return torch.tensor(p.T, dtype=torch.float32), int(self.labels[i])
