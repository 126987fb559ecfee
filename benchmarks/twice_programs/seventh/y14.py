"""https://github.com/autogluon/autogluon/issues/1454 - 'Reproducible modelling': all seeds are fixed, yet with a time
limit two runs give the same model different amounts of training before the time is up."""
import argparse
import json
import math
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn


class TimeBudget:
    def __init__(self, seconds):
        self.deadline = time.monotonic() + seconds

    def left(self):
        return self.deadline - time.monotonic()

    def exhausted(self):
        return time.monotonic() >= self.deadline  # cause


class Tabular:
    def __init__(self, n, seed):
        g = np.random.default_rng(seed)
        x = g.normal(size=(n, 14)).astype(np.float32)
        cat = g.integers(0, 9, n)
        effect = g.normal(0, 1.2, 9)
        y = np.sin(x[:, 0] * 2) + x[:, 1] * x[:, 2] + effect[cat] + 0.5 * np.abs(x[:, 3]) + g.normal(0, 0.3, n)
        self.x, self.cat, self.y = torch.from_numpy(x), torch.from_numpy(cat), torch.from_numpy(y.astype(np.float32))

    def split(self, fraction):
        k = int(len(self.y) * fraction)
        a, b = object.__new__(Tabular), object.__new__(Tabular)
        a.x, a.cat, a.y = self.x[:k], self.cat[:k], self.y[:k]
        b.x, b.cat, b.y = self.x[k:], self.cat[k:], self.y[k:]
        return a, b


class TabNet(nn.Module):
    def __init__(self, width, depth, dropout):
        super().__init__()
        self.emb = nn.Embedding(9, 4)
        dims = [18] + [width] * depth
        self.body = nn.Sequential(*[m for a, b in zip(dims, dims[1:]) for m in (nn.Linear(a, b), nn.GELU(), nn.Dropout(dropout))])
        self.out = nn.Linear(width, 1)

    def forward(self, x, cat):
        return self.out(self.body(torch.cat([x, self.emb(cat)], 1))).squeeze(1)


CANDIDATES = {
    "small": dict(width=32, depth=2, dropout=0.0),
    "wide": dict(width=128, depth=2, dropout=0.1),
    "deep": dict(width=64, depth=4, dropout=0.05),
}


def fit_one(name, train, valid, seconds, seed):
    torch.manual_seed(seed)
    model = TabNet(**CANDIDATES[name])
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-3)
    budget = TimeBudget(seconds)
    best, state, epoch = math.inf, None, 0
    while epoch < 400 and not budget.exhausted():
        model.train()
        for idx in torch.randperm(len(train.y)).split(128):
            loss = nn.functional.mse_loss(model(train.x[idx], train.cat[idx]), train.y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            v = nn.functional.mse_loss(model(valid.x, valid.cat), valid.y).item()
        if v < best:
            best, state = v, {k: t.clone() for k, t in model.state_dict().items()}
        epoch += 1
    model.load_state_dict(state)
    model.eval()
    print(f"{name:6s} validation mse {best:.5f} after {epoch} epochs")
    return model, best


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--time-limit", type=float, default=4.5)
    ap.add_argument("--seed", type=int, default=0)
    args = ap.parse_args()
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    train, rest = Tabular(4000, 17).split(0.7)
    valid, test = rest.split(0.5)
    models = {}
    for name in CANDIDATES:
        models[name] = fit_one(name, train, valid, args.time_limit / len(CANDIDATES), args.seed)
    weights = torch.tensor([1.0 / v for _, v in models.values()])
    weights = weights / weights.sum()
    with torch.no_grad():
        pred = sum(w * m(test.x, test.cat) for w, (m, _) in zip(weights, models.values()))
    mse = nn.functional.mse_loss(pred, test.y).item()
    board = {name: v for name, (_, v) in models.items()}
    Path("leaderboard.json").write_text(json.dumps({"models": board, "weights": weights.tolist(), "test_mse": mse}, indent=1))
    print(f"ensemble test mse {mse:.5f} at {time.strftime('%H:%M:%S')}")


if __name__ == "__main__":
    main()
