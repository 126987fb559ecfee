"""PyTorch digits example with DataLoader workers, tqdm bars, a rich summary and checkpoint metadata."""
from __future__ import annotations

import argparse
import json
import os
import platform
import random
import socket
import sys
import time
import uuid
from collections import deque
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm


class Digits(Dataset):
    """8x8 digits with random shift/noise augmentation done inside the loader workers."""

    def __init__(self, X, y, train):
        self.X, self.y, self.train = X, y, train

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        img = self.X[i].copy()
        if self.train:
            dx, dy = random.randint(-1, 1), random.randint(-1, 1)
            img = np.roll(img, (dx, dy), (0, 1))
            img += np.random.normal(0, 0.15, img.shape).astype("float32")
        return torch.from_numpy(img)[None], int(self.y[i])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 24, 3, padding=1)
        self.conv2 = nn.Conv2d(24, 48, 3, padding=1)
        self.dropout1 = nn.Dropout2d(0.1)
        self.dropout2 = nn.Dropout(0.3)
        self.fc1 = nn.Linear(48 * 16, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = self.dropout1(F.max_pool2d(x, 2))
        x = F.relu(self.fc1(torch.flatten(x, 1)))
        return F.log_softmax(self.fc2(self.dropout2(x)), dim=1)


class SmoothedValue:
    """Window median and global average, as in the torchvision references."""

    def __init__(self, window=20, fmt="{median:.4f} ({avg:.4f})"):
        self.d, self.total, self.n, self.fmt = deque(maxlen=window), 0.0, 0, fmt

    def update(self, v, n=1):
        self.d.append(v)
        self.n += n
        self.total += v * n

    def __str__(self):
        return self.fmt.format(median=float(np.median(self.d)), avg=self.total / max(self.n, 1), value=self.d[-1])


def seed_worker(worker_id):
    s = torch.initial_seed() % 2 ** 32
    np.random.seed(s)
    random.seed(s)
    torch.set_num_threads(1)


def train(args, model, loader, optimizer, sched, epoch):
    model.train()
    meters = {"loss": SmoothedValue(), "time": SmoothedValue(fmt="{avg:.4f}"), "data": SmoothedValue(fmt="{avg:.4f}")}
    end, header = time.time(), f"Epoch: [{epoch}]"
    bar = tqdm(loader, desc=f"train {epoch}", unit="batch", leave=False, file=sys.stderr)
    for i, (data, target) in enumerate(bar):
        meters["data"].update(time.time() - end)
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        sched.step()
        meters["loss"].update(loss.item(), len(target))
        meters["time"].update(time.time() - end)
        bar.set_postfix(loss=f"{loss.item():.3f}")
        if i % args.log_interval == 0:
            eta = timedelta(seconds=int(meters["time"].total / meters["time"].n * (len(loader) - i)))
            print(f"{header}  [{i:>2}/{len(loader)}]  eta: {eta}  lr: {sched.get_last_lr()[0]:.6f}  "
                  f"loss: {meters['loss']}  time: {meters['time']}  data: {meters['data']}")
        end = time.time()
    total = meters["time"].total
    print(f"{header} Total time: {timedelta(seconds=int(total))} ({total / len(loader):.4f} s / it)")
    return meters["loss"].total / meters["loss"].n, total


@torch.no_grad()
def test(model, loader):
    model.eval()
    loss, correct, conf = 0.0, 0, torch.zeros(10, 10, dtype=torch.long)
    for data, target in loader:
        out = model(data)
        loss += F.nll_loss(out, target, reduction="sum").item()
        pred = out.argmax(1)
        correct += int((pred == target).sum())
        for t, p in zip(target, pred):
            conf[t, p] += 1
    n = len(loader.dataset)
    print(f"\nTest set: Average loss: {loss / n:.4f}, Accuracy: {correct}/{n} ({100. * correct / n:.2f}%)\n")
    return loss / n, correct / n, conf


def save_checkpoint(path: Path, model, optimizer, epoch, metrics, run):
    tmp = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    torch.save({
        "epoch": epoch,
        "state_dict": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "metrics": metrics,
        "meta": {"run_id": run["id"], "host": run["host"], "pid": os.getpid(), "saved_at": time.time(),
                 "saved_at_str": time.ctime(), "python": platform.python_version(), "torch": torch.__version__},
    }, tmp)
    os.replace(tmp, path)


def main():
    parser = argparse.ArgumentParser(description="PyTorch digits example")
    parser.add_argument("--batch-size", type=int, default=48)
    parser.add_argument("--test-batch-size", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--log-interval", type=int, default=10)
    parser.add_argument("--save-dir", type=Path, default=Path("experiments"))
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    np.random.seed(args.seed)
    random.seed(args.seed)
    torch.set_num_threads(1)
    run = {"id": uuid.uuid4().hex[:12], "host": socket.gethostname(), "start": datetime.now()}
    save_dir = args.save_dir / f"{run['start']:%b%d_%H-%M-%S}_{run['host']}"
    save_dir.mkdir(parents=True)
    (save_dir / "config.json").write_text(json.dumps({k: str(v) for k, v in vars(args).items()}, indent=2))
    print(f"run {run['id']} -> {save_dir}")

    d = load_digits()
    X = (d.images / 16.0).astype("float32")
    perm = np.random.RandomState(0).permutation(len(X))
    tr, te = perm[:1400], perm[1400:]
    g = torch.Generator()
    g.manual_seed(args.seed)
    train_loader = DataLoader(Digits(X[tr], d.target[tr], True), args.batch_size, shuffle=True, num_workers=args.workers,
                              worker_init_fn=seed_worker, generator=g, persistent_workers=True)
    test_loader = DataLoader(Digits(X[te], d.target[te], False), args.test_batch_size)
    model = Net()
    optimizer = optim.AdamW(model.parameters(), lr=args.lr / 25)
    sched = OneCycleLR(optimizer, args.lr, epochs=args.epochs, steps_per_epoch=len(train_loader))

    history, best = [], 0.0
    wall = time.time()
    for epoch in range(1, args.epochs + 1):
        loss, secs = train(args, model, train_loader, optimizer, sched, epoch)
        t = time.time()
        tl, acc, conf = test(model, test_loader)
        history.append({"epoch": epoch, "train_loss": loss, "test_loss": tl, "test_acc": acc, "train_s": round(secs, 3),
                        "test_s": round(time.time() - t, 3), "img_per_s": round(len(tr) / secs, 1)})
        with open(save_dir / "metrics.jsonl", "a") as f:
            f.write(json.dumps({**history[-1], "ts": datetime.now().isoformat()}) + "\n")
        if acc > best:
            best = acc
            save_checkpoint(save_dir / "best.pth", model, optimizer, epoch, {"loss": tl, "acc": acc}, run)
    save_checkpoint(save_dir / "last.pth", model, optimizer, epoch, {"loss": tl, "acc": acc, "history": history}, run)
    np.savetxt(save_dir / "confusion.txt", conf.numpy(), fmt="%4d")

    table = Table(title=f"Training summary ({run['start']:%Y-%m-%d %H:%M})")
    for c in ("epoch", "train loss", "test loss", "test acc", "time", "img/s"):
        table.add_column(c, justify="right")
    for h in history:
        table.add_row(str(h["epoch"]), f"{h['train_loss']:.5f}", f"{h['test_loss']:.5f}", f"{h['test_acc'] * 100:.2f}%",
                      f"{h['train_s'] + h['test_s']:.2f}s", f"{h['img_per_s']:.0f}")
    Console(width=90).print(table)
    print(f"best accuracy {best * 100:.3f}%  total wall time {timedelta(seconds=time.time() - wall)}")


if __name__ == "__main__":
    main()
