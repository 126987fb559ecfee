"""Synthetic point clouds of simple solids with random augmentation, and their loader."""
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

SHAPES = ("sphere", "cube", "cylinder", "cone", "torus")


def sample_shape(kind, n, rng):
    u, v = rng.random(n), rng.random(n) * 2 * np.pi
    if kind == "sphere":
        p = rng.normal(size=(n, 3))
        return p / np.linalg.norm(p, axis=1, keepdims=True)
    if kind == "cube":
        p = rng.uniform(-1, 1, (n, 3))
        ax = rng.integers(0, 3, n)
        p[np.arange(n), ax] = np.sign(p[np.arange(n), ax])
        return p
    if kind == "cylinder":
        return np.column_stack([np.cos(v), np.sin(v), 2 * u - 1])
    if kind == "cone":
        r = np.sqrt(u)
        return np.column_stack([r * np.cos(v), r * np.sin(v), 1 - 2 * r])
    w = rng.random(n) * 2 * np.pi
    return np.column_stack([(1 + 0.4 * np.cos(w)) * np.cos(v), (1 + 0.4 * np.cos(w)) * np.sin(v), 0.4 * np.sin(w)])


class PointClouds(Dataset):
    def __init__(self, size, points, seed, augment):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, len(SHAPES), size)
        self.clouds = [sample_shape(SHAPES[k], points, rng) * rng.uniform(0.7, 1.3, 3) for k in self.labels]
        self.augment = augment

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        p = self.clouds[i]
        if self.augment:
            a = np.random.uniform(0, 2 * np.pi)
            rot = np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]])
            p = p @ rot * np.random.uniform(0.8, 1.25)
            p = p + np.clip(0.03 * np.random.randn(*p.shape), -0.08, 0.08)
            p = p[np.random.permutation(len(p))[: int(len(p) * 0.75)]]
        return torch.as_tensor(p[: int(len(self.clouds[i]) * 0.75)], dtype=torch.float32), int(self.labels[i])


def init_worker(worker_id):
    torch.set_num_threads(1)
    np.random.seed((worker_id + int(time.time())) % 2 ** 32)  # cause


def make_loader(dataset, batch_size, shuffle, seed, workers):
    gen = torch.Generator().manual_seed(seed)
    return DataLoader(dataset, batch_size=batch_size, shuffle=shuffle, num_workers=workers, generator=gen,
                      worker_init_fn=init_worker, persistent_workers=workers > 0, drop_last=shuffle)
