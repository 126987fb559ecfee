"""https://github.com/CAREamics/careamics/issues/460 : patch transforms draw from np.random.default_rng()
without a seed, so patches and flips differ between runs although all global seeds are set."""
import argparse
import json
import os
import random
import time
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)


@dataclass
class Config:
    patch: int = 24
    n_patches: int = 96
    batch: int = 16
    epochs: int = 4
    lr: float = 2e-3
    noise: float = 0.25
    seed: int = 42


def make_scene(seed, size=96, count=4):
    rs = np.random.RandomState(seed)
    yy, xx = np.mgrid[0:size, 0:size]
    scenes = []
    for _ in range(count):
        img = np.zeros((size, size), np.float32)
        for _ in range(25):
            cy, cx = rs.uniform(0, size, 2)
            r = rs.uniform(2, 8)
            img += rs.uniform(0.2, 1.0) * np.exp(-((yy - cy) ** 2 + (xx - cx) ** 2) / (2 * r * r))
        scenes.append((img / img.max()).astype(np.float32))
    return np.stack(scenes)


def extract_patches(scenes, size, count, seed):
    rs = np.random.RandomState(seed)
    out = []
    for _ in range(count):
        k = rs.randint(len(scenes))
        y, x = rs.randint(scenes.shape[1] - size, size=2)
        out.append(scenes[k, y:y + size, x:x + size])
    return np.stack(out)


class XYFlip:
    def __init__(self, p=0.5, seed=None):
        self.p = p
        self.rng = np.random.default_rng(seed)  # cause

    def __call__(self, patch):
        if self.rng.random() < self.p:
            patch = patch[::-1]
        if self.rng.random() < self.p:
            patch = patch[:, ::-1]
        return patch


class Rotate90:
    def __init__(self, seed=None):
        self.rng = np.random.default_rng(seed)

    def __call__(self, patch):
        return np.rot90(patch, k=int(self.rng.integers(4)))


def build_transforms(cfg):
    return [XYFlip(0.5), Rotate90(seed=cfg.seed)]  # cause


class PatchDataset(Dataset):
    def __init__(self, patches, noise, transforms, seed):
        self.clean = patches
        rs = np.random.RandomState(seed)
        self.noisy = patches + noise * rs.randn(*patches.shape).astype(np.float32)
        self.transforms = transforms

    def __len__(self):
        return len(self.clean)

    def __getitem__(self, i):
        both = np.stack([self.noisy[i], self.clean[i]], -1)
        for t in self.transforms:
            both = t(both)
        both = torch.from_numpy(np.ascontiguousarray(both))
        return both[None, ..., 0], both[None, ..., 1]


class SmallUNet(nn.Module):
    def __init__(self, c=12):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, c, 3, padding=1), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1), nn.ReLU())
        self.mid = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(c, 2 * c, 3, padding=1), nn.ReLU())
        self.up = nn.ConvTranspose2d(2 * c, c, 2, stride=2)
        self.out = nn.Conv2d(2 * c, 1, 3, padding=1)

    def forward(self, x):
        d = self.down(x)
        return x + self.out(torch.cat([d, self.up(self.mid(d))], 1))


def psnr(model, loader):
    model.eval()
    err, n = 0.0, 0
    with torch.no_grad():
        for x, y in loader:
            err += ((model(x) - y) ** 2).sum().item()
            n += y.numel()
    return 10 * np.log10(1.0 / (err / n))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=4)
    cfg = Config(epochs=ap.parse_args().epochs)
    seed_everything(cfg.seed)
    start = time.time()
    print(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}] pid={os.getpid()} {cfg}")
    train = extract_patches(make_scene(1), cfg.patch, cfg.n_patches, 3)
    val = extract_patches(make_scene(2), cfg.patch, 32, 4)
    loader = DataLoader(PatchDataset(train, cfg.noise, build_transforms(cfg), 5), cfg.batch, shuffle=True)
    val_loader = DataLoader(PatchDataset(val, cfg.noise, [], 6), 32)
    model = SmallUNet()
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    history = []
    for epoch in range(cfg.epochs):
        model.train()
        losses = []
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        history.append({"epoch": epoch, "loss": float(np.mean(losses)), "psnr": float(psnr(model, val_loader))})
        print("epoch %d loss %.6f psnr %.4f (%.1fs)" % (epoch, history[-1]["loss"], history[-1]["psnr"], time.time() - start))
    with open("result.json", "w") as f:
        json.dump(history, f, indent=1)


if __name__ == "__main__":
    main()
