"""Forecast daily demand with a small neural additive model (trend, seasonality, AR-net).

Modelled on https://github.com/ourownstory/neural_prophet/issues/147
The series is generated, split in time, fitted in mini-batches and forecast over a holdout.
"""
import argparse
import json
import logging
import random
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("prophet")


@dataclass
class ForecastConfig:
    seed: int = 0
    days: int = 900
    holdout: int = 120
    n_lags: int = 14
    n_changepoints: int = 8
    yearly_order: int = 5
    weekly_order: int = 3
    hidden: int = 16
    epochs: int = 15
    batch_size: int = 64
    learning_rate: float = 0.02
    out_dir: str = "forecast"


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)


def make_series(cfg):
    t = np.arange(cfg.days)
    trend = 50 + 0.03 * t + 0.05 * np.clip(t - 400, 0, None)
    yearly = 8 * np.sin(2 * np.pi * t / 365.25) + 3 * np.cos(4 * np.pi * t / 365.25)
    weekly = np.array([0, 1.0, 1.5, 1.2, 3.0, 6.0, 4.0])[t % 7]
    noise = np.zeros(cfg.days)
    shocks = np.random.normal(0, 1.5, cfg.days)
    for i in range(1, cfg.days):
        noise[i] = 0.6 * noise[i - 1] + shocks[i]
    ds = pd.date_range("2019-01-01", periods=cfg.days, freq="D")
    return pd.DataFrame({"ds": ds, "y": trend + yearly + weekly + noise})


def fourier(t, period, order):
    k = np.arange(1, order + 1)
    arg = 2 * np.pi * np.outer(t, k) / period
    return np.hstack([np.sin(arg), np.cos(arg)])


class Normalizer:
    def fit(self, y):
        self.shift, self.scale = float(y.min()), float(np.quantile(y, 0.95) - y.min())
        return self

    def forward(self, y):
        return (y - self.shift) / self.scale

    def inverse(self, y):
        return y * self.scale + self.shift


def tabularize(y, cfg):
    """Features per day after the first n_lags: time, seasonal terms, lags."""
    t = np.arange(cfg.n_lags, len(y))
    season = np.hstack([fourier(t, 365.25, cfg.yearly_order), fourier(t, 7, cfg.weekly_order)])
    lags = np.stack([y[i - cfg.n_lags:i] for i in t])
    as_tensor = lambda a: torch.tensor(a, dtype=torch.float32)
    return as_tensor(t / cfg.days), as_tensor(season), as_tensor(lags), as_tensor(y[t])


class Trend(nn.Module):
    def __init__(self, n_changepoints):
        super().__init__()
        self.register_buffer("knots", torch.linspace(0, 0.8, n_changepoints + 1)[1:])
        self.bias = nn.Parameter(torch.zeros(1))
        self.slope = nn.Parameter(torch.zeros(1))
        self.deltas = nn.Parameter(torch.zeros(n_changepoints))

    def forward(self, t):
        hinge = torch.relu(t[:, None] - self.knots)
        return self.bias + self.slope * t + hinge @ self.deltas


class TimeNet(nn.Module):
    def __init__(self, n_season, cfg):
        super().__init__()
        self.trend = Trend(cfg.n_changepoints)
        self.season = nn.Linear(n_season, 1, bias=False)
        nn.init.zeros_(self.season.weight)
        self.ar = nn.Sequential(
            nn.Linear(cfg.n_lags, cfg.hidden),  # cause
            nn.ReLU(),
            nn.Linear(cfg.hidden, 1))  # cause

    def forward(self, t, season, lags):
        return self.trend(t) + self.season(season).squeeze(1) + self.ar(lags).squeeze(1)


def fit(model, data, cfg):
    loader = DataLoader(TensorDataset(*data), batch_size=cfg.batch_size, shuffle=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.learning_rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=cfg.learning_rate, total_steps=cfg.epochs * len(loader))
    loss_fn = nn.SmoothL1Loss(beta=0.3)
    history = []
    for epoch in range(cfg.epochs):
        start, total = time.perf_counter(), 0.0
        for t, season, lags, y in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(t, season, lags), y)
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(y)
        history.append(total / len(data[0]))
        log.info("epoch %02d loss %.6f (%.2fs)", epoch, history[-1], time.perf_counter() - start)
    return history


def metrics(y, yhat):
    err = y - yhat
    return {"mae": round(float(np.abs(err).mean()), 5),
            "rmse": round(float(np.sqrt((err ** 2).mean())), 5),
            "mape": round(float(np.abs(err / y).mean() * 100), 5)}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=ForecastConfig.seed)
    ap.add_argument("--epochs", type=int, default=ForecastConfig.epochs)
    args = ap.parse_args()
    cfg = ForecastConfig(seed=args.seed, epochs=args.epochs)
    set_seed(cfg.seed)
    out = Path(cfg.out_dir)
    out.mkdir(exist_ok=True)

    df = make_series(cfg)
    split = cfg.days - cfg.holdout
    norm = Normalizer().fit(df.y.values[:split])
    tensors = tabularize(norm.forward(df.y.values), cfg)
    n_train = split - cfg.n_lags
    train = [a[:n_train] for a in tensors]
    test = [a[n_train:] for a in tensors]

    model = TimeNet(tensors[1].shape[1], cfg)
    history = fit(model, train, cfg)
    model.eval()
    with torch.no_grad():
        fitted = norm.inverse(model(*train[:3]).numpy())
        forecast = norm.inverse(model(*test[:3]).numpy())
    result = {"train": metrics(df.y.values[cfg.n_lags:split], fitted),
              "test": metrics(df.y.values[split:], forecast)}

    pd.DataFrame({"ds": df.ds[split:], "y": df.y[split:], "yhat": forecast}).to_csv(
        out / "forecast.csv", index=False)
    (out / "metrics.json").write_text(json.dumps({**result, "loss": history}, indent=1))
    (out / "config.json").write_text(json.dumps(asdict(cfg), indent=1))
    for name, m in result.items():
        print(f"{name:5s} MAE={m['mae']:.5f} RMSE={m['rmse']:.5f} MAPE={m['mape']:.4f}%")
    print("changepoint deltas:", " ".join(f"{v:+.4f}" for v in model.trend.deltas.tolist()))


if __name__ == "__main__":
    main()
