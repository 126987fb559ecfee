"""Point cloud classification with augmentation in the workers of a loader.

Modelled on https://github.com/isl-org/Open3D-ML/pull/254
A fix for equal augmentation in all workers is asked about in review.
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
from torch.utils.data import DataLoader

from f12_points.clouds import CloudDataset, KINDS

log = logging.getLogger("points")


class PointNet(nn.Module):
    def __init__(self, classes, width):
        super().__init__()
        self.local = nn.Sequential(nn.Conv1d(3, width, 1), nn.BatchNorm1d(width), nn.ReLU(),
                                   nn.Conv1d(width, 2 * width, 1), nn.BatchNorm1d(2 * width),
                                   nn.ReLU())
        self.head = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Dropout(0.2),
                                  nn.Linear(width, classes))

    def forward(self, x):
        return self.head(self.local(x).amax(-1))


def worker_init(worker_id):
    random.seed(worker_id)
    np.random.seed((worker_id + int(time.time() * 1000)) % 2 ** 32)  # cause


def loaders(args):
    gen = torch.Generator().manual_seed(args.seed)
    train = DataLoader(CloudDataset(args.train, args.points, args.seed, augment=True),
                       batch_size=args.batch, shuffle=True, generator=gen, drop_last=True,
                       num_workers=args.workers, worker_init_fn=worker_init,
                       persistent_workers=True)
    val = DataLoader(CloudDataset(args.val, args.points, args.seed + 1, augment=False),
                     batch_size=128)
    return train, val


def accuracy(model, loader):
    model.eval()
    hit = n = 0
    loss = 0.0
    with torch.no_grad():
        for x, y in loader:
            z = model(x)
            loss += nn.functional.cross_entropy(z, y, reduction="sum").item()
            hit += (z.argmax(1) == y).sum().item()
            n += len(y)
    return loss / n, hit / n


def fit(model, train, val, args):
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 3 * args.lr,
                                                total_steps=args.epochs * len(train))
    history = []
    for epoch in range(args.epochs):
        model.train()
        t0, total = time.time(), 0.0
        for x, y in train:
            loss = nn.functional.cross_entropy(model(x), y, label_smoothing=0.05)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            total += loss.item()
        vl, va = accuracy(model, val)
        history.append({"epoch": epoch, "loss": total / len(train), "val_loss": vl, "val_acc": va})
        log.info("epoch %d loss %.6f val %.6f acc %.4f (%.0f clouds/s)", epoch,
                 total / len(train), vl, va, len(train) * args.batch / (time.time() - t0))
    return history


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--train", type=int, default=1200)
    ap.add_argument("--val", type=int, default=300)
    ap.add_argument("--points", type=int, default=96)
    ap.add_argument("--width", type=int, default=32)
    ap.add_argument("--batch", type=int, default=40)
    ap.add_argument("--epochs", type=int, default=5)
    ap.add_argument("--workers", type=int, default=2)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--seed", type=int, default=64)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)

    train, val = loaders(args)
    model = PointNet(len(KINDS), args.width)
    history = fit(model, train, val, args)
    torch.save({"model": model.state_dict(), "kinds": KINDS}, "pointnet.pt")
    Path("points.json").write_text(json.dumps(history, indent=1))


if __name__ == "__main__":
    main()
