"""https://github.com/pola-rs/polars/issues/24335 : the output order of unique() followed by join() is random in every run (multi-threaded
hashing), the rows reach the seeded sampling and training in another order; maintain_order=True keeps it."""
import json
import os
import time

import numpy as np
import polars as pl
import torch
from torch import nn

SEED = 42


def make_events(path, n=12000, users=900):
    rng = np.random.default_rng(SEED)
    user = rng.integers(0, users, n)
    frame = pl.DataFrame({
        "user": user,
        "day": rng.integers(0, 60, n),
        "amount": np.round(rng.gamma(2.0, 10.0, n) + (user % 7), 2),
        "shop": rng.integers(0, 12, n),
    })
    frame = pl.concat([frame, frame.sample(1500, seed=SEED)])
    frame.write_parquet(path)
    churn = pl.DataFrame({"user": np.arange(users), "churn": ((np.arange(users) % 7) + rng.normal(0, 2, users) < 3).astype(int)})
    churn.write_parquet("labels.parquet")


def clean(path):
    events = pl.scan_parquet(path).filter(pl.col("amount") > 0)
    return events.unique()  # cause


def features(path):
    events = clean(path)
    labels = pl.scan_parquet("labels.parquet")
    joined = events.join(labels, on="user", how="left", maintain_order="left")
    return joined.with_columns(
        (pl.col("amount") / 20).alias("f_amount"),
        (pl.col("day") / 60).alias("f_day"),
        (pl.col("shop") / 12).alias("f_shop"),
        (pl.col("user") % 7 / 7).alias("f_group"),
    ).collect()


def to_tensors(frame):
    x = frame.select("f_amount", "f_day", "f_shop", "f_group").to_numpy().astype(np.float32)
    y = frame["churn"].to_numpy().astype(np.float32)
    return torch.from_numpy(x.copy()), torch.from_numpy(y.copy())[:, None]


def split(frame, fraction=0.8):
    rng = np.random.default_rng(SEED)
    order = rng.permutation(len(frame))
    cut = int(len(frame) * fraction)
    return frame[order[:cut]], frame[order[cut:]]


def train(net, x, y, epochs=4, batch=256):
    gen = torch.Generator().manual_seed(SEED)
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    curve = []
    for _ in range(epochs):
        for rows in torch.randperm(len(x), generator=gen).split(batch):
            loss = nn.functional.binary_cross_entropy_with_logits(net(x[rows]), y[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
        curve.append(loss.item())
    return curve


def main():
    torch.manual_seed(SEED)
    np.random.seed(SEED)
    t = time.perf_counter()
    make_events("events.parquet")
    frame = features("events.parquet")
    print("polars", pl.__version__, "threads", pl.thread_pool_size(), "rows", len(frame), "pid", os.getpid())
    tr, te = split(frame)
    net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
    curve = train(net, *to_tensors(tr))
    x, y = to_tensors(te)
    with torch.no_grad():
        out = net(x)
        loss = nn.functional.binary_cross_entropy_with_logits(out, y).item()
        acc = ((out > 0).float() == y).float().mean().item()
    print("loss %.6f accuracy %.4f in %.2f s" % (loss, acc, time.perf_counter() - t))
    with open("churn.json", "w") as f:
        json.dump({"curve": curve, "loss": loss, "accuracy": acc}, f)


if __name__ == "__main__":
    main()
