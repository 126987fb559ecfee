"""https://github.com/pola-rs/polars/issues/7935 - group_by().agg() returns the groups in an order that varies between runs unless maintain_order=True, so the later seeded split takes other rows."""
import json
import os
import random
import time

import numpy as np
import polars as pl
import torch
from torch import nn

SEED = 603


def event_log(users=500, events=20000):
    rng = np.random.default_rng(SEED)
    taste = rng.normal(size=users)
    user = rng.integers(0, users, events)
    price = np.exp(rng.normal(2 + 0.3 * taste[user], 0.6))
    hour = (rng.normal(14 + 3 * taste[user], 4) % 24).astype(int)
    kind = np.where(rng.random(events) < 1 / (1 + np.exp(-taste[user])), "buy", "view")
    churn = (taste + rng.normal(0, 0.7, users) < 0).astype(int)
    log = pl.DataFrame({"user": [f"u{u:04d}" for u in user], "price": price, "hour": hour, "kind": kind})
    labels = pl.DataFrame({"user": [f"u{u:04d}" for u in range(users)], "churn": churn})
    return log, labels


def user_features(log):
    grouped = log.group_by("user")  # cause
    return grouped.agg(
        pl.len().alias("n"),
        pl.col("price").max().alias("max_price"),
        pl.col("price").median().alias("median_price"),
        pl.col("hour").min().alias("first_hour"),
        pl.col("hour").max().alias("last_hour"),
        (pl.col("kind") == "buy").sum().alias("buys"),
    )


def to_tensors(table):
    cols = ["n", "max_price", "median_price", "first_hour", "last_hour", "buys"]
    x = table.select(cols).to_numpy().astype(np.float64)
    y = table["churn"].to_numpy().astype(np.float32)
    return x, y


class Net(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(d, 24), nn.ReLU(), nn.Dropout(0.1), nn.Linear(24, 1))

    def forward(self, x):
        return self.layers(x).squeeze(-1)


def train(model, x, y, epochs=12):
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(32):
            loss = nn.functional.binary_cross_entropy_with_logits(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
    return loss.item()


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    t0 = time.time()
    log, labels = event_log()
    table = user_features(log).join(labels, on="user", how="left", maintain_order="left")
    print(f"{table.height} users, features in {time.time() - t0:.2f}s, pid {os.getpid()}")
    x, y = to_tensors(table)
    perm = np.random.permutation(len(x))
    tr, te = perm[:380], perm[380:]
    mean, std = x[tr].mean(0), x[tr].std(0) + 1e-9
    xs = torch.tensor((x - mean) / std, dtype=torch.float32)
    ys = torch.tensor(y)
    model = Net(x.shape[1])
    last = train(model, xs[tr], ys[tr])
    model.eval()
    with torch.no_grad():
        out = model(xs[te])
        acc = ((out > 0).float() == ys[te]).float().mean().item()
        nll = nn.functional.binary_cross_entropy_with_logits(out, ys[te]).item()
    print(f"test accuracy {acc:.4f} loss {nll:.6f} finished {time.ctime()}")
    with open("churn.json", "w") as f:
        json.dump({"last_train_loss": last, "accuracy": acc, "loss": nll, "seconds": time.time() - t0}, f)


if __name__ == "__main__":
    main()
