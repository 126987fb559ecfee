"""Train a small 2-D lesion segmentation network on synthetic phantoms.

Modelled on https://github.com/Project-MONAI/MONAI/issues/7546

The training loader applies a chain of spatial and intensity transforms; the
validation loader only rescales. Writes metrics.csv, summary.json and run.log.
"""
import csv
import json
import logging
import os
import random
import sys
import time

import numpy as np
import torch
from torch.utils.data import DataLoader

from z01_pkg.data import PhantomSet
from z01_pkg.model import SegNet, dice_loss, dice_score
from z01_pkg.transforms import (Chain, RandAffineShift, RandFlip, RandGamma,
                                RandGaussianNoise, ScaleIntensity)

CONFIG = {
    "seed": 2024,
    "size": 32,
    "n_train": 96,
    "n_val": 32,
    "batch_size": 16,
    "epochs": 6,
    "lr": 3e-3,
}

log = logging.getLogger("segment")


def setup_logging():
    log.setLevel(logging.INFO)
    fmt = logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S")
    for handler in (logging.StreamHandler(sys.stdout), logging.FileHandler("run.log", mode="w")):
        handler.setFormatter(fmt)
        log.addHandler(handler)


def seed_everything(seed):
    os.environ["PL_GLOBAL_SEED"] = str(seed)
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)


def build_loaders(cfg):
    train_tf = Chain([
        ScaleIntensity(),
        RandFlip(prob=0.5, axis=0),
        RandFlip(prob=0.5, axis=1),
        RandAffineShift(prob=0.4, max_shift=4),
        RandGamma(prob=0.5, low=0.7, high=1.5),
        RandGaussianNoise(prob=0.5, std=0.08),
    ])
    val_tf = Chain([ScaleIntensity()])
    train = PhantomSet(cfg["n_train"], cfg["size"], seed=cfg["seed"], transform=train_tf)
    val = PhantomSet(cfg["n_val"], cfg["size"], seed=cfg["seed"] + 1, transform=val_tf)
    gen = torch.Generator().manual_seed(cfg["seed"])
    train_loader = DataLoader(train, batch_size=cfg["batch_size"], shuffle=True, generator=gen)
    val_loader = DataLoader(val, batch_size=cfg["batch_size"])
    return train_loader, val_loader


def train_epoch(net, loader, opt):
    net.train()
    total, count = 0.0, 0
    for image, label in loader:
        opt.zero_grad()
        loss = dice_loss(net(image), label)
        loss.backward()
        opt.step()
        total += loss.item() * len(image)
        count += len(image)
    return total / count


@torch.no_grad()
def evaluate(net, loader):
    net.eval()
    scores = []
    for image, label in loader:
        scores.extend(dice_score(net(image), label).tolist())
    return float(np.mean(scores)), float(np.std(scores))


def main():
    setup_logging()
    cfg = CONFIG
    seed_everything(cfg["seed"])
    log.info("working directory %s", os.getcwd())
    log.info("config %s", json.dumps(cfg))
    train_loader, val_loader = build_loaders(cfg)
    log.info("%d training and %d validation slices", len(train_loader.dataset), len(val_loader.dataset))

    net = SegNet(width=8)
    opt = torch.optim.AdamW(net.parameters(), lr=cfg["lr"], weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=cfg["epochs"])
    rows = []
    best = {"epoch": -1, "dice": -1.0}
    for epoch in range(cfg["epochs"]):
        t0 = time.perf_counter()
        loss = train_epoch(net, train_loader, opt)
        mean, std = evaluate(net, val_loader)
        sched.step()
        rows.append({"epoch": epoch, "train_loss": loss, "val_dice": mean, "val_dice_std": std})
        log.info("epoch %d loss %.6f dice %.6f +- %.6f in %.2fs", epoch, loss, mean, std,
                 time.perf_counter() - t0)
        if mean > best["dice"]:
            best = {"epoch": epoch, "dice": mean}
            torch.save(net.state_dict(), "best.pt")

    with open("metrics.csv", "w", newline="") as fh:
        writer = csv.DictWriter(fh, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    norm = float(sum(p.double().pow(2).sum() for p in net.parameters()).sqrt())
    with open("summary.json", "w") as fh:
        json.dump({"config": cfg, "best": best, "weight_norm": norm}, fh, indent=2)
    log.info("best epoch %d dice %.6f, weights saved to %s", best["epoch"], best["dice"],
             os.path.abspath("best.pt"))


if __name__ == "__main__":
    main()
