"""Patch segmentation training with a process-based augmentation loader.

Modelled on https://github.com/MIC-DKFZ/batchgenerators/issues/17
The multi-process augmenter stayed non-deterministic although it was given seeds for its workers.
"""
import argparse
import json
import logging
import multiprocessing as mp
import random
import time
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

log = logging.getLogger("segtrain")


@dataclass
class Config:
    n_cases: int = 24
    size: int = 32
    patch: int = 24
    batch_size: int = 8
    batches_per_epoch: int = 10
    epochs: int = 3
    workers: int = 2
    lr: float = 5e-3
    seed: int = 1234


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def make_cases(cfg):
    """Round bright lesions on a noisy background."""
    rng = np.random.RandomState(cfg.seed)
    yy, xx = np.mgrid[: cfg.size, : cfg.size]
    cases = []
    for _ in range(cfg.n_cases):
        cy, cx = rng.uniform(8, cfg.size - 8, 2)
        r = rng.uniform(3, 7)
        mask = ((yy - cy) ** 2 + (xx - cx) ** 2 < r**2).astype(np.float32)
        img = rng.normal(0, 0.5, (cfg.size, cfg.size)) + mask * rng.uniform(0.7, 1.2)
        cases.append((img.astype(np.float32), mask))
    return cases


# ----------------------------------------------------------- augmentations
def random_crop(img, seg, patch):
    y = np.random.randint(0, img.shape[0] - patch + 1)
    x = np.random.randint(0, img.shape[1] - patch + 1)
    return img[y:y + patch, x:x + patch], seg[y:y + patch, x:x + patch]


def mirror(img, seg):
    if np.random.rand() < 0.5:
        img, seg = img[:, ::-1], seg[:, ::-1]
    if np.random.rand() < 0.5:
        img, seg = img[::-1], seg[::-1]
    return img, seg


def gaussian_noise(img, sigma=0.05):
    return img + np.random.normal(0, sigma, img.shape)


def brightness_multiplicative(img, low=0.7, high=1.3):
    factor = random.uniform(low, high)  # cause
    return img * factor


def augment(img, seg, cfg):
    img, seg = random_crop(img, seg, cfg.patch)
    img, seg = mirror(img, seg)
    img = brightness_multiplicative(img)
    img = gaussian_noise(img)
    return np.ascontiguousarray(img, dtype=np.float32), np.ascontiguousarray(seg)


# ------------------------------------------------------------------ loader
def producer(queue, cases, cfg, worker_seed, n_batches):
    np.random.seed(worker_seed)
    for _ in range(n_batches):
        idx = np.random.randint(0, len(cases), cfg.batch_size)
        pairs = [augment(*cases[i], cfg) for i in idx]
        data = np.stack([p[0] for p in pairs])[:, None]
        seg = np.stack([p[1] for p in pairs])[:, None]
        queue.put((data, seg))
    queue.put(None)


class MultiProcessAugmenter:
    """Round-robin over the queues of a fixed number of worker processes."""

    def __init__(self, cases, cfg, epoch):
        ctx = mp.get_context("fork")
        share = cfg.batches_per_epoch // cfg.workers
        self.queues = [ctx.Queue(4) for _ in range(cfg.workers)]
        self.procs = [
            ctx.Process(
                target=producer,
                args=(q, cases, cfg, cfg.seed + 100 * epoch + k, share),
                daemon=True,
            )
            for k, q in enumerate(self.queues)
        ]
        for p in self.procs:
            p.start()

    def __iter__(self):
        live = list(self.queues)
        while live:
            for q in list(live):
                item = q.get()
                if item is None:
                    live.remove(q)
                else:
                    yield item
        for p in self.procs:
            p.join()


class TinyUNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.ReLU())
        self.mid = nn.Sequential(nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU())
        self.up = nn.Conv2d(3 * width, 1, 3, padding=1)

    def forward(self, x):
        a = self.down(x)
        b = self.mid(F.max_pool2d(a, 2))
        b = F.interpolate(b, scale_factor=2)
        return self.up(torch.cat([a, b], 1))


def dice(logits, seg):
    pred = (logits > 0).float()
    inter = (pred * seg).sum()
    return float(2 * inter / (pred.sum() + seg.sum() + 1e-6))


@torch.no_grad()
def evaluate(model, cases):
    model.eval()
    x = torch.from_numpy(np.stack([c[0] for c in cases]))[:, None]
    y = torch.from_numpy(np.stack([c[1] for c in cases]))[:, None]
    out = model(x)
    return float(F.binary_cross_entropy_with_logits(out, y)), dice(out, y)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=Config.epochs)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    cfg = Config(epochs=args.epochs)
    seed_all(cfg.seed)
    torch.set_num_threads(1)
    cases = make_cases(cfg)
    train, val = cases[:18], cases[18:]
    model = TinyUNet()
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    history = []
    for epoch in range(cfg.epochs):
        t0 = time.time()
        model.train()
        losses = []
        for data, seg in MultiProcessAugmenter(train, cfg, epoch):
            opt.zero_grad()
            loss = F.binary_cross_entropy_with_logits(
                model(torch.from_numpy(data)), torch.from_numpy(seg)
            )
            loss.backward()
            opt.step()
            losses.append(loss.item())
        val_loss, val_dice = evaluate(model, val)
        history.append({"epoch": epoch, "train": float(np.mean(losses)),
                        "val": val_loss, "dice": val_dice})
        log.info("epoch %d took %.2fs", epoch, time.time() - t0)
        print(f"epoch {epoch} train {history[-1]['train']:.6f} "
              f"val {val_loss:.6f} dice {val_dice:.4f}")
    with open("history.json", "w") as fh:
        json.dump(history, fh, indent=1)
    torch.save(model.state_dict(), "model.pt")
    total = sum(p.abs().sum().item() for p in model.parameters())
    print(f"final weight norm {total:.6f}")


if __name__ == "__main__":
    main()
