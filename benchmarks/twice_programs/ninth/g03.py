"""Matrix factorisation on an event log prepared with polars.

Modelled on https://github.com/pola-rs/polars/issues/7935 where the same script printed another table at every run.
"""
import argparse
import json
import logging
import random
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn

from g03_recsys.catalog import attach_ids, build_catalog, simulate_events

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("recsys")


class BiasedMF(nn.Module):
    def __init__(self, users, items, dim):
        super().__init__()
        self.user = nn.Embedding(users, dim)
        self.item = nn.Embedding(items, dim)
        self.bu = nn.Embedding(users, 1)
        self.bi = nn.Embedding(items, 1)
        self.mu = nn.Parameter(torch.zeros(1))
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)
        nn.init.zeros_(self.bu.weight)
        nn.init.zeros_(self.bi.weight)

    def forward(self, u, i):
        dot = (self.user(u) * self.item(i)).sum(1)
        return self.mu + self.bu(u).squeeze(1) + self.bi(i).squeeze(1) + dot


def batches(n, size, gen):
    perm = torch.randperm(n, generator=gen)
    for s in range(0, n, size):
        yield perm[s:s + size]


def rmse(model, u, i, y):
    with torch.no_grad():
        return float(torch.sqrt(torch.mean((model(u, i) - y) ** 2)))


def train(model, data, args):
    u, i, y = data
    gen = torch.Generator().manual_seed(args.seed)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=1e-5)
    history = []
    for ep in range(args.epochs):
        t0, total = time.time(), 0.0
        for idx in batches(len(y), args.batch_size, gen):
            loss = torch.mean((model(u[idx], i[idx]) - y[idx]) ** 2)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += float(loss.detach()) * len(idx)
        history.append(total / len(y))
        log.info("epoch %d mse %.5f (%.0f rows/s)", ep, history[-1], len(y) / (time.time() - t0))
    return history


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=11)
    p.add_argument("--users", type=int, default=900)
    p.add_argument("--items", type=int, default=1200)
    p.add_argument("--events", type=int, default=60000)
    p.add_argument("--min-count", type=int, default=8)
    p.add_argument("--dim", type=int, default=12)
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--batch-size", type=int, default=512)
    p.add_argument("--lr", type=float, default=5e-3)
    p.add_argument("--workdir", default=".")
    args = p.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    work = Path(args.workdir)
    events = simulate_events(args.users, args.items, args.events, args.seed)
    events.write_parquet(work / "events.parquet")
    catalog = build_catalog(events, args.min_count)
    table = attach_ids(events, catalog)
    log.info("%d events, %d items kept", len(table), len(catalog))
    catalog.write_parquet(work / "catalog.parquet")

    cut = int(0.85 * len(table))
    cols = [torch.from_numpy(table[c].to_numpy().copy()) for c in ("user", "item", "stars")]
    tr, te = [c[:cut] for c in cols], [c[cut:] for c in cols]
    model = BiasedMF(args.users, len(catalog), args.dim)
    with torch.no_grad():
        model.mu.fill_(float(tr[2].mean()))
    hist = train(model, tr, args)
    test = rmse(model, *te)
    torch.save({"model": model.state_dict(), "items": len(catalog)}, work / "mf.pt")
    (work / "metrics.json").write_text(json.dumps({"train_mse": hist, "test_rmse": test}))
    print(f"train_mse {hist[-1]:.8f} test_rmse {test:.8f}")


if __name__ == "__main__":
    main()
