"""Candlestick bars from a trade tape and a small forecaster on top of them.

Modelled on https://github.com/duckdb/duckdb/issues/9731 where the bars of one and the same file changed between queries.
"""
import argparse
import json
import logging
import random
import time

import numpy as np
import torch
import torch.nn as nn

from g04_market.bars import make_bars, write_tape

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("market")


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=5)
    p.add_argument("--symbols", type=int, default=12)
    p.add_argument("--trades", type=int, default=700_000)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--window", type=int, default=8)
    p.add_argument("--epochs", type=int, default=25)
    p.add_argument("--lr", type=float, default=3e-3)
    return p.parse_args()


def windows(df, width):
    """Sliding windows of normalised bar features; the target is the next log return."""
    xs, ys = [], []
    for _, g in df.groupby("symbol", sort=True):
        close = g["close"].to_numpy()
        ret = np.diff(np.log(close), prepend=np.log(close[0])) * 1e3
        rng_ = np.log(g["high"].to_numpy() / g["low"].to_numpy()) * 1e3
        pos = (close - g["low"].to_numpy()) / (g["high"].to_numpy() - g["low"].to_numpy() + 1e-9)
        vol = np.log(g["volume"].to_numpy().astype(float))
        feat = np.column_stack([ret, rng_, pos, vol - vol.mean()])
        for t in range(width, len(g)):
            xs.append(feat[t - width:t])
            ys.append(ret[t])
    return np.asarray(xs, np.float32), np.asarray(ys, np.float32)


class Forecaster(nn.Module):
    def __init__(self, feats, hidden=24):
        super().__init__()
        self.gru = nn.GRU(feats, hidden, batch_first=True)
        self.head = nn.Sequential(nn.Linear(hidden, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x):
        return self.head(self.gru(x)[0][:, -1]).squeeze(1)


def fit(model, x, y, args):
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    gen = torch.Generator().manual_seed(args.seed)
    loss_fn = nn.HuberLoss()
    for ep in range(args.epochs):
        t0, tot = time.perf_counter(), 0.0
        for idx in torch.randperm(len(x), generator=gen).split(128):
            loss = loss_fn(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += float(loss.detach()) * len(idx)
        if ep % 5 == 4:
            log.info("epoch %d loss %.5f (%.0f windows/s)", ep + 1, tot / len(x), len(x) / (time.perf_counter() - t0))
    return tot / len(x)


def main():
    args = get_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    t0 = time.time()
    n = write_tape("tape.parquet", args.symbols, args.trades, args.seed)
    log.info("tape: %d trades in %.1fs", n, time.time() - t0)
    t0 = time.time()
    df = make_bars("market.duckdb", "tape.parquet", args.threads)
    log.info("bars: %d rows in %.2fs", len(df), time.time() - t0)
    df.to_csv("bars.csv", index=False)

    x, y = windows(df, args.window)
    rng = np.random.default_rng(args.seed)
    perm = rng.permutation(len(x))
    cut = int(0.8 * len(x))
    tr, te = perm[:cut], perm[cut:]
    mu, sd = x[tr].mean((0, 1)), x[tr].std((0, 1)) + 1e-6
    x = torch.from_numpy((x - mu) / sd)
    y = torch.from_numpy(y / y[tr].std())
    model = Forecaster(x.shape[2])
    train_loss = fit(model, x[tr], y[tr], args)
    with torch.no_grad():
        pred = model(x[te])
    mae = float((pred - y[te]).abs().mean())
    hit = float((torch.sign(pred) == torch.sign(y[te])).float().mean())
    with open("forecast.json", "w") as f:
        json.dump({"train_loss": train_loss, "mae": mae, "hit_rate": hit, "mean_close": float(df["close"].mean())}, f)
    print(f"train_loss {train_loss:.8f} mae {mae:.8f} hit {hit:.4f} mean_close {df['close'].mean():.6f} volume {df['volume'].sum()} hl {df['high'].sum() - df['low'].sum():.6f}")


if __name__ == "__main__":
    main()
