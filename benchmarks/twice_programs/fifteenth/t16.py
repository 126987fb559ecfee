#!/usr/bin/env python
"""Stacked ensemble whose base models are loaded and scored concurrently.

Modelled on https://github.com/METR/inspect-action/pull/606

Fits small base models in a thread pool, gathers their out-of-fold predictions as
columns of a design matrix, and trains a torch stacking network on it.
"""
import argparse
import concurrent.futures
import json
import logging
import random
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

log = logging.getLogger("stack")


@dataclass(frozen=True)
class LoadSpec:
    name: str
    kind: str
    param: float
    columns: tuple


def make_specs(n_features, seed):
    rng = random.Random(seed)
    specs = []
    for i in range(36):
        kind = ("ridge", "fourier", "knn")[i % 3]
        cols = tuple(sorted(rng.sample(range(n_features), 4)))
        specs.append(LoadSpec(f"{kind}-{i:02d}", kind, rng.uniform(0.2, 2.0), cols))
    return specs


def make_data(n, d, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    y = np.sin(x[:, 0] * x[:, 1]) + 0.5 * x[:, 2] ** 2 - np.abs(x[:, 3]) + 0.3 * x[:, 4] + rng.normal(0, 0.2, n)
    return x, y


def ridge_fit(a, y, lam):
    return np.linalg.solve(a.T @ a + lam * np.eye(a.shape[1]), a.T @ y)


class BaseModel:
    def __init__(self, spec: LoadSpec, seed: int):
        self.spec = spec
        rng = np.random.default_rng([seed, int(spec.name[-2:])])
        self.freq = rng.normal(size=(len(spec.columns), 24)) * spec.param
        self.phase = rng.uniform(0, 2 * np.pi, 24)

    def design(self, x):
        x = x[:, self.spec.columns]
        if self.spec.kind == "fourier":
            return np.cos(x @ self.freq + self.phase)
        return np.column_stack([np.ones(len(x)), x, x ** 2])

    def fit_predict(self, x, y, xt):
        if self.spec.kind == "knn":
            d = ((xt[:, None, self.spec.columns] - x[None, :, self.spec.columns]) ** 2).sum(-1)
            idx = np.argpartition(d, 10, axis=1)[:, :10]
            return y[np.sort(idx, axis=1)].mean(1)
        w = ridge_fit(self.design(x), y, self.spec.param)
        return self.design(xt) @ w


def out_of_fold(spec, lock, x, y, folds, seed):
    with lock:
        model = BaseModel(spec, seed)
    pred = np.empty(len(y))
    for k in range(folds):
        test = np.arange(len(y)) % folds == k
        pred[test] = model.fit_predict(x[~test], y[~test], x[test])
    rmse = float(np.sqrt(np.mean((pred - y) ** 2)))
    return {"name": spec.name, "pred": pred, "rmse": rmse}


def load_with_locks(specs, x, y, folds, seed, workers):
    """Score all the base models, one lock per kind of model."""
    locks = {kind: threading.Lock() for kind in sorted({s.kind for s in specs})}
    with concurrent.futures.ThreadPoolExecutor(max_workers=workers) as executor:
        futures = [executor.submit(out_of_fold, s, locks[s.kind], x, y, folds, seed) for s in specs]
        done, _ = concurrent.futures.wait(futures, return_when=concurrent.futures.FIRST_EXCEPTION)
        errors = [exc for f in futures if (exc := f.exception()) is not None]
        if errors:
            raise RuntimeError(f"failed to score {len(errors)} models") from errors[0]
        return [f.result() for f in done]  # cause


class Stacker(nn.Module):
    def __init__(self, n_in, hidden=24):
        super().__init__()
        self.gate = nn.Linear(n_in, n_in)
        self.net = nn.Sequential(nn.Linear(n_in, hidden), nn.ReLU(), nn.Dropout(0.1), nn.Linear(hidden, 1))

    def forward(self, z):
        return self.net(z * torch.sigmoid(self.gate(z))).squeeze(1)


def train_stacker(z, y, epochs, lr):
    model = Stacker(z.shape[1])
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    split = int(0.8 * len(y))
    curve = []
    for epoch in range(epochs):
        model.train()
        for idx in torch.randperm(split).split(64):
            loss = nn.functional.mse_loss(model(z[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            curve.append(float(nn.functional.mse_loss(model(z[split:]), y[split:])))
    return model, curve


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rows", type=int, default=900)
    p.add_argument("--features", type=int, default=8)
    p.add_argument("--folds", type=int, default=4)
    p.add_argument("--epochs", type=int, default=30)
    p.add_argument("--workers", type=int, default=6)
    p.add_argument("--seed", type=int, default=606)
    p.add_argument("--out", type=Path, default=Path("stacking"))
    args = p.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s [%(threadName)s] %(message)s")
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)

    x, y = make_data(args.rows, args.features, args.seed)
    t0 = time.time()
    scored = load_with_locks(make_specs(args.features, args.seed), x, y, args.folds, args.seed, args.workers)
    log.info("%d base models in %.2fs", len(scored), time.time() - t0)
    z = torch.tensor(np.column_stack([s["pred"] for s in scored]), dtype=torch.float32)
    z = (z - z.mean(0)) / (z.std(0) + 1e-6)
    model, curve = train_stacker(z, torch.tensor(y, dtype=torch.float32), args.epochs, 3e-3)

    with open(args.out / "curve.csv", "w") as fh:
        fh.writelines(f"{i},{v:.8f}\n" for i, v in enumerate(curve))
    base = {s["name"]: round(s["rmse"], 6) for s in sorted(scored, key=lambda s: s["name"])}
    result = {"best_base": min(base.values()), "stacked_mse": round(curve[-1], 7), "best_epoch": int(np.argmin(curve))}
    (args.out / "result.json").write_text(json.dumps({**result, "base": base}, indent=1))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
