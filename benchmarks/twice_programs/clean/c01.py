"""Image classification after timm's train.py: a folder named by date and model, summary.csv, args.yaml, checkpoints, a link to the best."""

import argparse
import csv
import logging
import os
import random
import shutil
import time
from collections import OrderedDict
from datetime import datetime, timedelta

import numpy as np
import torch
import yaml
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

_logger = logging.getLogger("train")


class AverageMeter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


class Net(nn.Module):
    def __init__(self, width=8, classes=5):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.bn = nn.BatchNorm2d(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(torch.relu(self.bn(self.stem(x))).mean((2, 3)))


class CheckpointSaver:
    def __init__(self, model, optimizer, args, folder, keep=2):
        self.model, self.optimizer, self.args, self.folder, self.keep = model, optimizer, args, folder, keep
        self.files, self.best = [], None

    def save(self, epoch, metric):
        state = {
            "epoch": epoch,
            "arch": type(self.model).__name__.lower(),
            "state_dict": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "version": 2,
            "args": self.args,
            "metric": metric,
        }
        tmp = os.path.join(self.folder, "tmp.pth.tar")
        path = os.path.join(self.folder, f"checkpoint-{epoch}.pth.tar")
        torch.save(state, tmp)
        os.replace(tmp, path)
        self.files = sorted([*self.files, (path, metric)], key=lambda x: x[1], reverse=True)
        for old, _ in self.files[self.keep :]:
            os.remove(old)
        self.files = self.files[: self.keep]
        _logger.info("Current checkpoints:\n%s", "\n".join(f" {f}" for f in self.files))
        if self.best is None or metric > self.best[0]:
            self.best = metric, epoch
            best = os.path.join(self.folder, "model_best.pth.tar")
            shutil.copyfile(path, best)
        return self.best


def train_one_epoch(epoch, model, loader, optimizer, loss_fn, args):
    batch_time, data_time, losses = AverageMeter(), AverageMeter(), AverageMeter()
    model.train()
    end = time.time()
    last = len(loader) - 1
    for idx, (x, y) in enumerate(loader):
        data_time.update(time.time() - end)
        loss = loss_fn(model(x), y)
        losses.update(loss.item(), x.size(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        batch_time.update(time.time() - end)
        if idx == last or idx % args.log_interval == 0:
            lr = optimizer.param_groups[0]["lr"]
            _logger.info(
                f"Train: {epoch} [{idx:>4d}/{len(loader)} ({100.0 * idx / last:>3.0f}%)]  "
                f"Loss: {losses.val:#.4g} ({losses.avg:#.3g})  "
                f"Time: {batch_time.val:.3f}s, {x.size(0) / batch_time.val:>7.2f}/s  "
                f"({batch_time.avg:.3f}s, {x.size(0) / batch_time.avg:>7.2f}/s)  "
                f"LR: {lr:.3e}  Data: {data_time.val:.3f} ({data_time.avg:.3f})"
            )
        end = time.time()
    return OrderedDict([("loss", losses.avg)])


@torch.no_grad()
def validate(model, loader, loss_fn, args):
    batch_time, losses, top1 = AverageMeter(), AverageMeter(), AverageMeter()
    model.eval()
    end = time.time()
    for idx, (x, y) in enumerate(loader):
        out = model(x)
        losses.update(loss_fn(out, y).item(), x.size(0))
        top1.update((out.argmax(1) == y).float().mean().item() * 100, x.size(0))
        batch_time.update(time.time() - end)
        end = time.time()
        _logger.info(
            f"Test: [{idx:>4d}/{len(loader) - 1}]  Time: {batch_time.val:.3f} ({batch_time.avg:.3f})  "
            f"Loss: {losses.val:>7.3f} ({losses.avg:>6.3f})  Acc@1: {top1.val:>7.3f} ({top1.avg:>7.3f})"
        )
    return OrderedDict([("loss", losses.avg), ("top1", top1.avg)])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--log-interval", type=int, default=4)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    g = np.random.default_rng(0)
    y = torch.tensor(g.integers(0, 5, 256))
    x = torch.tensor(g.normal(size=(256, 3, 8, 8)), dtype=torch.float32) + y[:, None, None, None] * 0.3
    train = DataLoader(TensorDataset(x[:192], y[:192]), 16, shuffle=True, num_workers=0)
    val = DataLoader(TensorDataset(x[192:], y[192:]), 32)
    model = Net()
    _logger.info(f"Model {type(model).__name__} created, param count:{sum(p.numel() for p in model.parameters())}")
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    loss_fn = nn.CrossEntropyLoss(label_smoothing=0.1)
    exp_name = "-".join([datetime.now().strftime("%Y%m%d-%H%M%S"), "net", "8"])
    outdir = os.path.join("output", "train", exp_name)
    os.makedirs(outdir)
    with open(os.path.join(outdir, "args.yaml"), "w") as f:
        f.write(yaml.safe_dump(vars(args), default_flow_style=False))
    saver = CheckpointSaver(model, optimizer, args, outdir)
    started = time.monotonic()
    for epoch in range(args.epochs):
        t0 = time.time()
        a = train_one_epoch(epoch, model, train, optimizer, loss_fn, args)
        b = validate(model, val, loss_fn, args)
        scheduler.step()
        row = OrderedDict(epoch=epoch, lr=optimizer.param_groups[0]["lr"], epoch_time=time.time() - t0)
        row.update([("train_" + k, v) for k, v in a.items()])
        row.update([("eval_" + k, v) for k, v in b.items()])
        with open(os.path.join(outdir, "summary.csv"), "a") as f:
            w = csv.DictWriter(f, fieldnames=row.keys())
            if epoch == 0:
                w.writeheader()
            w.writerow(row)
        best, best_epoch = saver.save(epoch, b["top1"])
    _logger.info(f"*** Best metric: {best} (epoch {best_epoch})")
    _logger.info(f"--result\n{outdir}  total {timedelta(seconds=int(time.monotonic() - started))}")


if __name__ == "__main__":
    main()
