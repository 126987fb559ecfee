"""Training of a PointNet-like classifier on augmented point clouds.

Modelled on https://github.com/isl-org/Open3D-ML/pull/254 where the results of a training were not reproducible.
"""
import argparse
import json
import logging
import random
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.tensorboard import SummaryWriter

from g13_points.data import SHAPES, PointClouds, make_loader

logging.basicConfig(level=logging.INFO, format="%(asctime)s [%(levelname)s] %(message)s")
log = logging.getLogger("pointnet")


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)


class PointNet(nn.Module):
    def __init__(self, classes, width=48):
        super().__init__()
        self.local = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                                   nn.Linear(width, 2 * width))
        self.norm = nn.BatchNorm1d(2 * width)
        self.head = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, classes))

    def forward(self, pts):
        return self.head(F.relu(self.norm(self.local(pts).amax(dim=1))))


def run_epoch(model, loader, opt=None):
    model.train(opt is not None)
    loss_sum, hits, seen = 0.0, 0, 0
    for pts, y in loader:
        with torch.set_grad_enabled(opt is not None):
            out = model(pts)
            loss = F.cross_entropy(out, y)
        if opt is not None:
            opt.zero_grad()
            loss.backward()
            opt.step()
        loss_sum += float(loss.detach()) * len(y)
        hits += int((out.argmax(1) == y).sum())
        seen += len(y)
    return loss_sum / seen, hits / seen, seen


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=2021)
    p.add_argument("--train", type=int, default=800)
    p.add_argument("--val", type=int, default=200)
    p.add_argument("--points", type=int, default=128)
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--logdir", default="tb")
    p.add_argument("--ckpt", default="pointnet.pt")
    args = p.parse_args()
    set_seed(args.seed)
    train = make_loader(PointClouds(args.train, args.points, args.seed, True), args.batch_size, True, args.seed, args.workers)
    val = make_loader(PointClouds(args.val, args.points, args.seed + 1, False), 64, False, args.seed, 0)
    model = PointNet(len(SHAPES))
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.epochs)
    board = SummaryWriter(args.logdir)
    rows = []
    for ep in range(args.epochs):
        t0 = time.time()
        tl, ta, seen = run_epoch(model, train, opt)
        rate = seen / (time.time() - t0)
        vl, va, _ = run_epoch(model, val)
        sched.step()
        rows.append({"epoch": ep, "train_loss": tl, "train_acc": ta, "val_loss": vl, "val_acc": va})
        board.add_scalar("loss/train", tl, ep)
        board.add_scalar("loss/val", vl, ep)
        board.add_scalar("speed/clouds_per_s", rate, ep)
        log.info("epoch %d train %.4f/%.3f val %.4f/%.3f %.0f clouds/s", ep, tl, ta, vl, va, rate)
    board.close()
    torch.save({"model": model.state_dict(), "args": vars(args)}, args.ckpt)
    with open("history.json", "w") as f:
        json.dump(rows, f, indent=1)
    last = rows[-1]
    print(f"train_loss {last['train_loss']:.8f} val_loss {last['val_loss']:.8f} val_acc {last['val_acc']:.4f}")


if __name__ == "__main__":
    main()
