"""Small U-Net segmentation with DataLoader workers; logging after the DETR/torchvision reference scripts."""
import argparse
import datetime
import json
import os
import random
import time
from collections import defaultdict, deque
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class SmoothedValue:
    def __init__(self, window_size=20, fmt="{median:.4f} ({global_avg:.4f})"):
        self.deque = deque(maxlen=window_size)
        self.total, self.count, self.fmt = 0.0, 0, fmt

    def update(self, value, n=1):
        self.deque.append(value)
        self.count += n
        self.total += value * n

    @property
    def global_avg(self):
        return self.total / self.count

    def __str__(self):
        d = torch.tensor(list(self.deque))
        return self.fmt.format(median=d.median().item(), avg=d.mean().item(), global_avg=self.global_avg,
                               value=self.deque[-1])


class MetricLogger:
    def __init__(self, delimiter="  "):
        self.meters = defaultdict(SmoothedValue)
        self.delimiter = delimiter

    def update(self, **kwargs):
        for k, v in kwargs.items():
            self.meters[k].update(v.item() if isinstance(v, torch.Tensor) else v)

    def __str__(self):
        return self.delimiter.join(f"{name}: {meter}" for name, meter in self.meters.items())

    def log_every(self, iterable, print_freq, header=""):
        start_time = end = time.time()
        iter_time, data_time = SmoothedValue(fmt="{avg:.4f}"), SmoothedValue(fmt="{avg:.4f}")
        width = len(str(len(iterable)))
        for i, obj in enumerate(iterable):
            data_time.update(time.time() - end)
            yield obj
            iter_time.update(time.time() - end)
            if i % print_freq == 0 or i == len(iterable) - 1:
                eta = datetime.timedelta(seconds=int(iter_time.global_avg * (len(iterable) - i)))
                print(self.delimiter.join([header, f"[{i:{width}d}/{len(iterable)}]", f"eta: {eta}", str(self),
                                           f"time: {iter_time}", f"data: {data_time}"]), flush=True)
            end = time.time()
        total = time.time() - start_time
        print(f"{header} Total time: {datetime.timedelta(seconds=int(total))} ({total / len(iterable):.4f} s / it)")


class BlobDataset(Dataset):
    """Images with bright ellipses; with random flips and noise as augmentation in the worker."""

    def __init__(self, n, size, train, seed):
        self.n, self.size, self.train, self.seed = n, size, train, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        rng = np.random.default_rng([self.seed, i])
        yy, xx = np.mgrid[0:self.size, 0:self.size] / self.size
        mask = np.zeros((self.size, self.size), bool)
        for _ in range(int(rng.integers(1, 4))):
            cy, cx, ry, rx = *rng.uniform(0.2, 0.8, 2), *rng.uniform(0.06, 0.2, 2)
            mask |= ((yy - cy) / ry) ** 2 + ((xx - cx) / rx) ** 2 < 1
        img = torch.from_numpy((0.8 * mask + rng.normal(0, 0.6, mask.shape)).astype(np.float32))[None]
        target = torch.from_numpy(mask.astype(np.float32))[None]
        if self.train:
            if torch.rand(()) < 0.5:
                img, target = img.flip(-1), target.flip(-1)
            img = img * (0.9 + 0.2 * random.random()) + 0.05 * torch.randn(img.shape)
        return img, target


def conv(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, c=8):
        super().__init__()
        self.e1, self.e2, self.mid = conv(1, c), conv(c, 2 * c), conv(2 * c, 4 * c)
        self.d2, self.d1, self.out = conv(6 * c, 2 * c), conv(3 * c, c), nn.Conv2d(c, 1, 1)

    def forward(self, x):
        a = self.e1(x)
        b = self.e2(F.max_pool2d(a, 2))
        m = self.mid(F.max_pool2d(b, 2))
        u = self.d2(torch.cat([F.interpolate(m, scale_factor=2), b], 1))
        return self.out(self.d1(torch.cat([F.interpolate(u, scale_factor=2), a], 1)))


def criterion(logits, target):
    p = logits.sigmoid()
    dice = 1 - (2 * (p * target).sum((1, 2, 3)) + 1) / (p.sum((1, 2, 3)) + target.sum((1, 2, 3)) + 1)
    return F.binary_cross_entropy_with_logits(logits, target), dice.mean()


def train_one_epoch(model, loader, optimizer, epoch, print_freq):
    model.train()
    logger = MetricLogger()
    for img, target in logger.log_every(loader, print_freq, f"Epoch: [{epoch}]"):
        bce, dice = criterion(model(img), target)
        loss = bce + dice
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        logger.update(loss=loss, bce=bce, dice=dice)
    return {k: m.global_avg for k, m in logger.meters.items()}


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    logger, inter, union = MetricLogger(), 0.0, 0.0
    for img, target in logger.log_every(loader, 10, "Test:"):
        logits = model(img)
        bce, dice = criterion(logits, target)
        pred = logits > 0
        inter += (pred & (target > 0.5)).sum().item()
        union += (pred | (target > 0.5)).sum().item()
        logger.update(bce=bce, dice=dice)
    return {**{k: m.global_avg for k, m in logger.meters.items()}, "iou": inter / union}


def seed_worker(worker_id):
    worker_seed = torch.initial_seed() % 2**32
    np.random.seed(worker_seed)
    random.seed(worker_seed)


def main(args):
    print(args)
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    out = Path(args.output_dir)
    out.mkdir(exist_ok=True)
    g = torch.Generator().manual_seed(args.seed)
    train = DataLoader(BlobDataset(200, 32, True, 0), args.batch_size, shuffle=True, num_workers=args.num_workers,
                       worker_init_fn=seed_worker, generator=g, persistent_workers=True)
    val = DataLoader(BlobDataset(64, 32, False, 1), args.batch_size)
    model = UNet()
    n_parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print("number of params:", n_parameters)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    lr_sched = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.3)
    print("Start training")
    start_time = time.time()
    for epoch in range(args.epochs):
        train_stats = train_one_epoch(model, train, optimizer, epoch, 10)
        lr_sched.step()
        test_stats = evaluate(model, val)
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                    "lr_scheduler": lr_sched.state_dict(), "epoch": epoch, "args": args}, out / "checkpoint.pth")
        log_stats = {**{f"train_{k}": v for k, v in train_stats.items()},
                     **{f"test_{k}": v for k, v in test_stats.items()},
                     "epoch": epoch, "n_parameters": n_parameters}
        with (out / "log.txt").open("a") as f:
            f.write(json.dumps(log_stats) + "\n")
    total_time = time.time() - start_time
    print("Training time {}".format(str(datetime.timedelta(seconds=total_time))))
    print(f"IoU {test_stats['iou']:.5f}, host {os.uname().nodename}")


if __name__ == "__main__":
    p = argparse.ArgumentParser("U-Net segmentation")
    p.add_argument("--lr", default=3e-3, type=float)
    p.add_argument("--batch_size", default=10, type=int)
    p.add_argument("--epochs", default=3, type=int)
    p.add_argument("--num_workers", default=2, type=int)
    p.add_argument("--seed", default=42, type=int)
    p.add_argument("--output_dir", default="out")
    main(p.parse_args())
