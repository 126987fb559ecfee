"""Train a small CNN on a synthetic digit-like dataset (plain PyTorch loop).

Usage: python n01.py [--epochs 4] [--lr 1e-3] [--out runs]
"""
import argparse
import json
import logging
import os
import random
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split
from tqdm import tqdm

logger = logging.getLogger("train")


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--seed", type=int, default=1337)
    p.add_argument("--log-interval", type=int, default=10)
    p.add_argument("--out", default="runs")
    return p.parse_args()


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)


class AverageMeter:
    """Keeps the current value and the running average."""

    def __init__(self):
        self.sum = 0.0
        self.count = 0

    def update(self, val, n=1):
        self.sum += val * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(self.count, 1)


class SmallCNN(nn.Module):
    def __init__(self, num_classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(16 * 4 * 4, num_classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(self.drop(x.flatten(1)))


def make_dataset(n=2000, num_classes=10, seed=0):
    rng = np.random.default_rng(seed)
    protos = rng.normal(size=(num_classes, 1, 16, 16)).astype(np.float32)
    y = rng.integers(0, num_classes, size=n)
    x = protos[y] + rng.normal(scale=1.5, size=(n, 1, 16, 16)).astype(np.float32)
    return TensorDataset(torch.from_numpy(x.astype(np.float32)), torch.from_numpy(y))


def train_one_epoch(model, loader, opt, epoch, args):
    model.train()
    losses, batch_time = AverageMeter(), AverageMeter()
    end = time.time()
    pbar = tqdm(loader, desc=f"epoch {epoch}")
    for i, (x, y) in enumerate(pbar):
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        losses.update(loss.item(), x.size(0))
        batch_time.update(time.time() - end)
        end = time.time()
        pbar.set_postfix(loss=f"{losses.avg:.4f}")
        if i % args.log_interval == 0:
            logger.info("Epoch: [%d][%d/%d]  Time %.3f (%.1f samples/s)  Loss %.4f",
                        epoch, i, len(loader), batch_time.avg,
                        x.size(0) / max(batch_time.avg, 1e-9), losses.avg)
    return losses.avg


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    loss, correct, n = 0.0, 0, 0
    for x, y in loader:
        out = model(x)
        loss += F.cross_entropy(out, y, reduction="sum").item()
        correct += (out.argmax(1) == y).sum().item()
        n += y.numel()
    return loss / n, correct / n


def main():
    args = parse_args()
    set_seed(args.seed)
    run_dir = os.path.join(args.out, "smallcnn")
    os.makedirs(run_dir, exist_ok=True)
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s",
        handlers=[logging.StreamHandler(),
                  logging.FileHandler(os.path.join(run_dir, "train.log"))])
    logger.info("args: %s", vars(args))

    ds = make_dataset()
    train_ds, val_ds = random_split(ds, [1600, 400], generator=torch.Generator().manual_seed(args.seed))
    g = torch.Generator().manual_seed(args.seed)
    train_loader = DataLoader(train_ds, args.batch_size, shuffle=True, generator=g)
    val_loader = DataLoader(val_ds, 256)

    model = SmallCNN()
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-2)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.epochs)
    print(f"model has {sum(p.numel() for p in model.parameters()):,} parameters")

    start, best, history = time.time(), 0.0, []
    for epoch in range(1, args.epochs + 1):
        t0 = time.time()
        train_loss = train_one_epoch(model, train_loader, opt, epoch, args)
        val_loss, val_acc = evaluate(model, val_loader)
        sched.step()
        dt = time.time() - t0
        history.append({"epoch": epoch, "train_loss": train_loss, "val_loss": val_loss,
                        "val_acc": val_acc, "lr": sched.get_last_lr()[0], "epoch_time": dt})
        print(f"| epoch {epoch:2d} | time: {dt:5.2f}s | train loss {train_loss:.5f} | "
              f"valid loss {val_loss:.5f} | valid acc {val_acc:.4f}")
        if val_acc > best:
            best = val_acc
            torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": opt.state_dict(),
                        "best_acc": best, "saved_at": time.time()},
                       os.path.join(run_dir, "best.pt"))
    total = time.time() - start
    with open(os.path.join(run_dir, "history.json"), "w") as f:
        json.dump({"history": history, "best_acc": best, "total_time": total}, f, indent=2)
    print(f"Best accuracy: {best:.4f}")
    print(f"Training time {total:.1f}s")


if __name__ == "__main__":
    main()
