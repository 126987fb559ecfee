"""https://github.com/isl-org/Open3D-ML/pull/254 - a worker_init_fn that seeds numpy with the clock (x + int(time())) keeps
workers apart, but 'will make the results not reproducible', as the review says."""
import argparse
import json
import os
import random
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SHAPES = ("sphere", "box", "cone", "torus")


def surface(kind, n, rng):
    u, v = rng.random(n), rng.random(n)
    if kind == "sphere":
        z, t = 2 * u - 1, 2 * np.pi * v
        r = np.sqrt(1 - z * z)
        p = np.stack([r * np.cos(t), r * np.sin(t), z], 1)
    elif kind == "box":
        p = rng.uniform(-1, 1, (n, 3))
        axis = rng.integers(0, 3, n)
        p[np.arange(n), axis] = np.sign(p[np.arange(n), axis])
    elif kind == "cone":
        h, t = np.sqrt(u), 2 * np.pi * v
        p = np.stack([h * np.cos(t), h * np.sin(t), 1 - 2 * h], 1)
    else:
        a, b = 2 * np.pi * u, 2 * np.pi * v
        p = np.stack([(0.7 + 0.3 * np.cos(b)) * np.cos(a), (0.7 + 0.3 * np.cos(b)) * np.sin(a), 0.3 * np.sin(b)], 1)
    return p.astype(np.float32)


class PointClouds(Dataset):
    def __init__(self, n, points=64, augment=False, seed=0):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, len(SHAPES), n)
        self.clouds = [surface(SHAPES[k], points, rng) + rng.normal(0, 0.12, (points, 3)).astype(np.float32) for k in self.labels]
        self.augment = augment

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        p = self.clouds[i]
        if self.augment:
            a, b = np.random.uniform(0, 2 * np.pi), np.random.uniform(0, np.pi)
            rz = np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]])
            rx = np.array([[1, 0, 0], [0, np.cos(b), -np.sin(b)], [0, np.sin(b), np.cos(b)]])
            p = (p @ (rz @ rx).T * np.random.uniform(0.8, 1.2)).astype(np.float32)
        return torch.from_numpy(p), int(self.labels[i])


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.point = nn.Sequential(nn.Linear(3, 48), nn.ReLU(), nn.Linear(48, 64), nn.ReLU())
        self.head = nn.Linear(64, len(SHAPES))

    def forward(self, p):
        return self.head(self.point(p).amax(1))


def make_loader(data, cfg, train):
    g = torch.Generator().manual_seed(cfg.seed)
    return DataLoader(
        data,
        batch_size=cfg.batch_size,
        shuffle=train,
        generator=g,
        num_workers=cfg.workers if train else 0,
        worker_init_fn=lambda x: np.random.seed(x + int(time.time())),  # cause
    )


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--epochs", type=int, default=5)
    ap.add_argument("--batch-size", type=int, default=32)
    ap.add_argument("--workers", type=int, default=2)
    cfg = ap.parse_args()
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)
    torch.set_num_threads(1)
    train = make_loader(PointClouds(640, augment=True, seed=1), cfg, True)
    test = make_loader(PointClouds(200, seed=2), cfg, False)
    model = PointNet()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    history = []
    for epoch in range(cfg.epochs):
        t0 = time.time()
        model.train()
        total = 0.0
        for p, y in train:
            loss = nn.functional.cross_entropy(model(p), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(y)
        model.eval()
        with torch.no_grad():
            hits = sum((model(p).argmax(1) == y).sum().item() for p, y in test)
        history.append({"epoch": epoch, "loss": total / 640, "test": hits / 200})
        print(f"[{os.getpid()}] epoch {epoch}: loss {total / 640:.5f}, test {hits / 200:.3f}, {time.time() - t0:.2f}s")
    with open("history.json", "w") as f:
        json.dump(history, f, indent=1)


if __name__ == "__main__":
    main()
