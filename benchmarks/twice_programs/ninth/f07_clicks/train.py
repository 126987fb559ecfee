"""Factorisation model trained with plain SGD."""
import argparse
import json
import time

import numpy as np
import torch
from torch import nn


class ClickModel(nn.Module):
    def __init__(self, users, items, dim):
        super().__init__()
        self.user = nn.Embedding(users, dim)
        self.item = nn.Embedding(items, dim)
        self.dense = nn.Sequential(nn.Linear(4 + 2 * dim, 24), nn.ReLU(), nn.Linear(24, 1))

    def forward(self, user, item, dense):
        u, i = self.user(user), self.item(item)
        return self.dense(torch.cat([dense, u, i], 1)).squeeze(1) + (u * i).sum(1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--table", required=True)
    ap.add_argument("--epochs", type=int, required=True)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--seed", type=int, required=True)
    ap.add_argument("--out", required=True)
    args = ap.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    data = np.loadtxt(args.table, delimiter=",")
    user = torch.as_tensor(data[:, 0], dtype=torch.long)
    item = torch.as_tensor(data[:, 5], dtype=torch.long)
    dense = torch.as_tensor(data[:, 1:5], dtype=torch.float32)
    dense = dense / dense.abs().amax(0).clamp(min=1)
    y = torch.as_tensor(data[:, 6], dtype=torch.float32)
    cut = int(0.85 * len(y))
    model = ClickModel(200, 50, 8)
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.8)
    history = []
    for epoch in range(args.epochs):
        t0, order, total = time.time(), torch.randperm(cut), 0.0
        for i in range(0, cut, args.batch):
            b = order[i:i + args.batch]
            loss = nn.functional.binary_cross_entropy_with_logits(
                model(user[b], item[b], dense[b]), y[b])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(b)
        with torch.no_grad():
            val = nn.functional.binary_cross_entropy_with_logits(
                model(user[cut:], item[cut:], dense[cut:]), y[cut:]).item()
        rate = cut / (time.time() - t0)
        history.append({"epoch": epoch, "train": total / cut, "val": val})
        print(f"epoch {epoch} train {total / cut:.6f} val {val:.6f} ({rate:.0f} rows/s)", flush=True)
    with open(args.out, "w") as fh:
        json.dump({"rows": len(y), "history": history}, fh, indent=1)


if __name__ == "__main__":
    main()
