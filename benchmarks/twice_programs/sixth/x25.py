"""https://github.com/ludwig-ai/ludwig/pull/2846 - batch_size=auto takes the size with the best measured throughput; the measurements of one step scatter, so another size wins in the next run."""
import json
import os
import random
import statistics
import time

import numpy as np
import torch
from torch import nn

SEED = 2846
CANDIDATES = (240, 244, 248, 252, 256, 260)


def make_table(n=3000, d=20):
    rng = np.random.default_rng(SEED)
    x = rng.normal(size=(n, d)).astype(np.float32)
    y = (np.tanh(x[:, :5]).sum(1) + x[:, 5] * x[:, 6] + rng.normal(0, 0.3, n)).astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy(y)[:, None]


class Combiner(nn.Module):
    def __init__(self, d, hidden=64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(d, hidden), nn.LayerNorm(hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.head(self.body(x))


class BatchSizeEvaluator:
    """Times one training step of a throw-away copy for each candidate."""

    def __init__(self, x, y):
        self.x, self.y = x, y
        self.samples_per_sec = {}

    def step(self, model, size):
        loss = nn.functional.mse_loss(model(self.x[:size]), self.y[:size])
        loss.backward()
        model.zero_grad()

    def select(self, factory):
        with torch.random.fork_rng():
            model = factory()
            self.step(model, CANDIDATES[0])
            for size in CANDIDATES:
                started = time.perf_counter()
                self.step(model, size)
                self.samples_per_sec[size] = size / (time.perf_counter() - started)  # cause
        return max(self.samples_per_sec, key=self.samples_per_sec.get)  # cause


def train(model, x, y, size, epochs, lr):
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    gen = torch.Generator().manual_seed(SEED)
    losses = []
    for epoch in range(epochs):
        perm, total, steps, times = torch.randperm(len(x), generator=gen), 0.0, 0, []
        for i in range(0, len(x), size):
            t0 = time.perf_counter()
            idx = perm[i:i + size]
            loss = nn.functional.mse_loss(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
            steps += 1
            times.append(time.perf_counter() - t0)
        losses.append(total / steps)
        print(f"epoch {epoch} loss {losses[-1]:.6f}, median step {statistics.median(times) * 1e3:.2f} ms")
    return losses


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    print("started", time.ctime(), "pid", os.getpid())
    x, y = make_table()
    size = BatchSizeEvaluator(x[:2400], y[:2400]).select(lambda: Combiner(20))
    model = Combiner(20)
    losses = train(model, x[:2400], y[:2400], size, epochs=8, lr=2e-3)
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x[2400:]), y[2400:]).item()
    print(f"validation {val:.6f}")
    with open("training_statistics.json", "w") as f:
        json.dump({"train": losses, "validation": val, "date": time.strftime("%F")}, f, indent=1)


if __name__ == "__main__":
    main()
