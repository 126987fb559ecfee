#!/usr/bin/env python
"""Segmentation of synthetic 3D scans with random spatial and intensity transforms.

Modelled on https://github.com/TorchIO-project/torchio/issues/208

Scans with an ellipsoid are loaded by a dataset, augmented by transforms which
record their parameters in the history of a subject, and segmented by a small 3D
network.
"""
import argparse
import json
import logging
import random
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

log = logging.getLogger("segment")
SHAPE = (16, 16, 16)


def set_determinism(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)


class Subject(dict):
    """Image, label and the transforms which were applied."""

    def __init__(self, image, label, name):
        super().__init__(image=image, label=label)
        self.name = name
        self.history = []

    def add_transform(self, transform, params):
        self.history.append((type(transform).__name__, params))


def make_subject(index, seed):
    gen = torch.Generator().manual_seed(seed * 10007 + index)
    axes = torch.stack(torch.meshgrid(*[torch.linspace(-1, 1, n) for n in SHAPE], indexing="ij"))
    centre = (torch.rand(3, generator=gen) - 0.5) * 0.7
    radius = 0.3 + 0.35 * torch.rand(3, generator=gen)
    inside = (((axes - centre[:, None, None, None]) / radius[:, None, None, None]) ** 2).sum(0) < 1
    image = 0.7 * inside.float() + 0.35 * torch.randn(SHAPE, generator=gen)
    image += 0.2 * axes[0] * torch.randn(1, generator=gen)
    return Subject(image[None], inside.float()[None], f"sub-{index:03d}")


class RandomTransform:
    """Base class: draws parameters and applies them to a copy of the subject."""

    def __init__(self, p=1.0, seed=None):
        self.p, self.seed = p, seed

    def get_params(self):
        raise NotImplementedError

    def apply(self, subject, params):
        raise NotImplementedError

    def draw(self):
        """Parameters of one call; the state of the caller's generator is kept."""
        with torch.random.fork_rng():
            if self.seed is None:
                seed = torch.seed()  # cause
            else:
                seed = self.seed
                torch.manual_seed(seed)
            active = float(torch.rand(1)) < self.p
            params = self.get_params()
        return active, {"seed": seed, **params}

    def __call__(self, subject):
        active, params = self.draw()
        if not active:
            return subject
        out = Subject(subject["image"].clone(), subject["label"].clone(), subject.name)
        out.history = list(subject.history)
        self.apply(out, params)
        out.add_transform(self, params)
        return out


class RandomFlip(RandomTransform):
    def get_params(self):
        return {"axes": [i + 1 for i in range(3) if float(torch.rand(1)) < 0.5]}

    def apply(self, subject, params):
        for key in ("image", "label"):
            subject[key] = torch.flip(subject[key], params["axes"])


class RandomNoise(RandomTransform):
    def __init__(self, std=(0.0, 0.25), **kwargs):
        super().__init__(**kwargs)
        self.std = std

    def get_params(self):
        std = self.std[0] + (self.std[1] - self.std[0]) * float(torch.rand(1))
        return {"std": std, "noise": torch.randn(SHAPE)}

    def apply(self, subject, params):
        subject["image"] = subject["image"] + params["std"] * params["noise"]


class RandomGamma(RandomTransform):
    def get_params(self):
        return {"gamma": float(torch.exp(0.3 * torch.randn(1)))}

    def apply(self, subject, params):
        image = subject["image"]
        low, high = image.min(), image.max()
        subject["image"] = ((image - low) / (high - low)).pow(params["gamma"]) * (high - low) + low


class RandomShift(RandomTransform):
    def get_params(self):
        return {"shift": [int(v) for v in torch.randint(-2, 3, (3,))]}

    def apply(self, subject, params):
        for key in ("image", "label"):
            subject[key] = torch.roll(subject[key], params["shift"], dims=(1, 2, 3))


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, subject):
        for t in self.transforms:
            subject = t(subject)
        return subject


class SubjectsDataset(Dataset):
    def __init__(self, subjects, transform=None):
        self.subjects, self.transform = subjects, transform

    def __len__(self):
        return len(self.subjects)

    def __getitem__(self, i):
        subject = self.subjects[i]
        if self.transform is not None:
            subject = self.transform(subject)
        image = (subject["image"] - subject["image"].mean()) / subject["image"].std()
        return image, subject["label"]


class TinyUNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down = nn.Sequential(nn.Conv3d(1, width, 3, padding=1), nn.ReLU())
        self.mid = nn.Sequential(nn.Conv3d(width, 2 * width, 3, stride=2, padding=1), nn.ReLU(),
                                 nn.ConvTranspose3d(2 * width, width, 2, stride=2), nn.ReLU())
        self.out = nn.Conv3d(2 * width, 1, 1)

    def forward(self, x):
        skip = self.down(x)
        return self.out(torch.cat([skip, self.mid(skip)], dim=1))


def dice(logits, label):
    pred = (logits > 0).float()
    dims = (1, 2, 3, 4)
    return ((2 * (pred * label).sum(dims) + 1) / (pred.sum(dims) + label.sum(dims) + 1)).mean()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--subjects", type=int, default=56)
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--batch-size", type=int, default=4)
    p.add_argument("--seed", type=int, default=25074390 % 9973)
    p.add_argument("--out", type=Path, default=Path("segmentation"))
    args = p.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    set_determinism(args.seed)
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    augment = Compose([RandomFlip(), RandomShift(p=0.8), RandomGamma(p=0.5), RandomNoise(p=0.5)])
    train = SubjectsDataset([make_subject(i, args.seed) for i in range(args.subjects)], augment)
    valid = SubjectsDataset([make_subject(1000 + i, args.seed) for i in range(16)])
    loader = DataLoader(train, batch_size=args.batch_size, shuffle=True,
                        generator=torch.Generator().manual_seed(args.seed))
    model = TinyUNet()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    history = []
    for epoch in range(args.epochs):
        t0, losses = time.time(), []
        for image, label in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(image), label)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        with torch.no_grad():
            images, labels = next(iter(DataLoader(valid, batch_size=len(valid), generator=torch.Generator())))
            score = float(dice(model(images), labels))
        history.append({"epoch": epoch, "loss": round(float(np.mean(losses)), 7), "dice": round(score, 6)})
        log.info("epoch %d loss %.4f dice %.4f (%.1fs)", epoch, history[-1]["loss"], score, time.time() - t0)
    (args.out / "history.json").write_text(json.dumps(history, indent=1))
    torch.save(model.state_dict(), args.out / "model.pt")
    print(json.dumps(history[-1]))


if __name__ == "__main__":
    main()
