"""Sequence regression with a recurrent cell and a small bank of memory slots.

Modelled on https://github.com/sauradip/STALE/issues/16
A background embedding of a detection model works in some trainings and not in others.
"""
import argparse
import csv
import logging
import random
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

log = logging.getLogger("slots")


def make_series(n, length, channels, seed):
    rng = np.random.default_rng(seed)
    freq = rng.uniform(0.2, 1.5, size=(n, 1, channels))
    phase = rng.uniform(0, 2 * np.pi, size=(n, 1, channels))
    t = np.arange(length)[None, :, None]
    x = np.sin(freq * t + phase) + 0.1 * rng.normal(size=(n, length, channels))
    y = (freq.mean((1, 2)) - 0.85) * 3 + np.cos(phase).mean((1, 2))
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


class SlotReader(nn.Module):
    """Attends from the last hidden state to a bank of slots of the batch."""

    def __init__(self, hidden, slots):
        super().__init__()
        self.hidden, self.slots = hidden, slots
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.write = nn.Linear(hidden, hidden)
        self.squash = nn.Hardtanh()

    def blank(self, batch):
        return torch.empty(batch, self.slots, self.hidden)  # cause

    def forward(self, states):
        batch, length, _ = states.shape
        bank = self.blank(batch)
        written = torch.tanh(self.write(states[:, ::3]))
        count = min(written.shape[1], self.slots - 2)
        bank[:, :count] = written[:, :count]
        bank = self.squash(torch.nan_to_num(bank))
        q = self.query(states[:, -1]).unsqueeze(1)
        att = torch.softmax((q * self.key(bank)).sum(-1) / self.hidden ** 0.5, dim=-1)
        return (att.unsqueeze(-1) * bank).sum(1)


class Regressor(nn.Module):
    def __init__(self, channels, hidden, slots, dropout):
        super().__init__()
        self.rnn = nn.GRU(channels, hidden, batch_first=True)
        self.reader = SlotReader(hidden, slots)
        self.drop = nn.Dropout(dropout)
        self.head = nn.Sequential(nn.Linear(2 * hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        for name, p in self.named_parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)
            else:
                nn.init.zeros_(p)

    def forward(self, x):
        states, last = self.rnn(x)
        z = torch.cat([last[0], self.reader(states)], dim=1)
        return self.head(self.drop(z)).squeeze(1)


def run_epoch(model, loader, opt=None):
    model.train(opt is not None)
    total, seen, t0 = 0.0, 0, time.perf_counter()
    for x, y in loader:
        with torch.set_grad_enabled(opt is not None):
            loss = nn.functional.mse_loss(model(x), y)
        if opt is not None:
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
        total += loss.item() * len(x)
        seen += len(x)
    return total / seen, seen / (time.perf_counter() - t0)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--series", type=int, default=1200)
    ap.add_argument("--length", type=int, default=24)
    ap.add_argument("--channels", type=int, default=3)
    ap.add_argument("--hidden", type=int, default=16)
    ap.add_argument("--slots", type=int, default=8)
    ap.add_argument("--dropout", type=float, default=0.1)
    ap.add_argument("--epochs", type=int, default=6)
    ap.add_argument("--batch", type=int, default=24)
    ap.add_argument("--seed", type=int, default=11)
    ap.add_argument("--out", type=Path, default=Path("curve.csv"))
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")

    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)

    x, y = make_series(args.series, args.length, args.channels, args.seed)
    g = torch.Generator().manual_seed(args.seed)
    train_set, val_set = random_split(TensorDataset(x, y), [0.8, 0.2], generator=g)
    train_loader = DataLoader(train_set, args.batch, shuffle=True, generator=g)
    val_loader = DataLoader(val_set, args.batch)

    model = Regressor(args.channels, args.hidden, args.slots, args.dropout)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.epochs)
    rows = []
    for epoch in range(args.epochs):
        tr, rate = run_epoch(model, train_loader, opt)
        va, _ = run_epoch(model, val_loader)
        sched.step()
        rows.append((epoch, repr(tr), repr(va)))
        log.info("epoch %d train %.5f val %.5f (%.0f series/s)", epoch, tr, va, rate)

    with args.out.open("w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["epoch", "train_mse", "val_mse"])
        w.writerows(rows)
    torch.save({"model": model.state_dict(), "args": {k: str(v) for k, v in vars(args).items()}},
               "regressor.pt")


if __name__ == "__main__":
    main()
