"""https://github.com/albumentations-team/albumentations/issues/2332 - the augmentation pipeline (Compose) keeps its own generator, whose seed is None by default, so seeding random, NumPy and torch does not reach it."""
import argparse
import json
import os
import random
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

from x01_vision.augment import CoarseDropout, Compose, GaussNoise, HFlip, Shift
from x01_vision.data import Patterns, make_images


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)


def build_transform():
    steps = [HFlip(), Shift(limit=2), GaussNoise(0.08), CoarseDropout()]
    return Compose(steps)  # cause


class SmallNet(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(0.1), nn.Linear(64, classes))

    def forward(self, x):
        return self.head(self.body(x))


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    right = total = 0
    for x, y in loader:
        right += (model(x).argmax(1) == y).sum().item()
        total += len(y)
    return right / total


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--seed", type=int, default=1234)
    args = ap.parse_args()
    seed_everything(args.seed)
    print(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}] process {os.getpid()} seed {args.seed}")

    train = Patterns(*make_images(600, seed=1), transform=build_transform())
    valid = Patterns(*make_images(200, seed=2))
    train_loader = DataLoader(train, batch_size=32, shuffle=True)
    valid_loader = DataLoader(valid, batch_size=100)

    model = SmallNet()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    loss_fn = nn.CrossEntropyLoss()
    history = []
    for epoch in range(args.epochs):
        model.train()
        t0, running = time.time(), 0.0
        for x, y in train_loader:
            opt.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            opt.step()
            running += loss.item() * len(y)
        acc = evaluate(model, valid_loader)
        history.append({"epoch": epoch, "loss": running / len(train), "val_acc": acc})
        print(f"epoch {epoch} loss {running / len(train):.5f} val {acc:.3f} ({time.time() - t0:.2f}s)")
    with open("history.json", "w") as f:
        json.dump(history, f, indent=1)


if __name__ == "__main__":
    main()
