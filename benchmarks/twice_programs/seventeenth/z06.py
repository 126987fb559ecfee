"""Fit a small emulator of a heat-equation solver with Lightning on a time budget.

Modelled on https://github.com/alan-turing-institute/autocast/pull/388

The learning rate is warmed up over the first steps and then annealed along a
cosine. Logs go to ./logs/emulator, the rollout scores to rollout.csv and report.json.
"""
import csv
import json
import logging
import math
import os
import sys
import time
import warnings

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import lightning.pytorch as pl
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.loggers import CSVLogger

CONFIG = {
    "seed": 11,
    "grid": 48,
    "n_traj": 40,
    "n_test": 8,
    "length": 12,
    "width": 24,
    "batch_size": 48,
    "max_steps": 240,
    "optimizer": {"lr": 4e-3, "weight_decay": 1e-4},
    "schedule": {"kind": "cosine", "warmup_steps": 20, "budget_s": 3.0, "floor": 0.01},
}

log = logging.getLogger("emulator")


# ------------------------------------------------------------------------ data
def simulate(rng, n, grid, length, substeps=6):
    """Trajectories of a periodic 1-D heat equation with variable conductivity."""
    x = np.arange(grid) / grid
    out = np.empty((n, length, 2, grid), dtype=np.float32)
    for k in range(n):
        kappa = 0.15 + 0.1 * np.sin(2 * np.pi * (x + rng.random()))
        u = np.zeros(grid)
        for m in range(1, 5):
            u += rng.normal() / m * np.sin(2 * np.pi * m * (x + rng.random()))
        for t in range(length):
            out[k, t, 0], out[k, t, 1] = u, kappa
            for _ in range(substeps):
                flux = kappa * (np.roll(u, -1) - u)
                u = u + flux - np.roll(flux, 1)
    return torch.from_numpy(out)


class HeatData(pl.LightningDataModule):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg

    def setup(self, stage=None):
        cfg = self.cfg
        rng = np.random.default_rng(cfg["seed"])
        traj = simulate(rng, cfg["n_traj"], cfg["grid"], cfg["length"])
        self.test = simulate(rng, cfg["n_test"], cfg["grid"], cfg["length"])
        now = traj[:, :-1].reshape(-1, 2, cfg["grid"])
        nxt = traj[:, 1:, :1].reshape(-1, 1, cfg["grid"])
        self.train = TensorDataset(now, nxt)

    def train_dataloader(self):
        gen = torch.Generator().manual_seed(self.cfg["seed"])
        return DataLoader(self.train, batch_size=self.cfg["batch_size"], shuffle=True,
                          generator=gen, drop_last=True)


# ----------------------------------------------------------------------- model
class Emulator(pl.LightningModule):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        w = cfg["width"]
        conv = lambda a, b: nn.Conv1d(a, b, 5, padding=2, padding_mode="circular")
        self.net = nn.Sequential(conv(2, w), nn.GELU(), conv(w, w), nn.GELU(), conv(w, 1))

    def forward(self, state):
        return state[:, :1] + self.net(state)

    def training_step(self, batch, batch_idx):
        now, nxt = batch
        loss = nn.functional.mse_loss(self(now), nxt)
        self.log("train_loss", loss, on_step=True, on_epoch=False)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), **self.cfg["optimizer"])


class CosineSchedule(Callback):
    """Warm-up followed by a cosine that reaches its floor when the budget is used up."""

    def __init__(self, base_lr, warmup_steps, budget_s, floor):
        self.base_lr = base_lr
        self.warmup_steps = warmup_steps
        self.budget_s = budget_s
        self.floor = floor
        self.started = None
        self.trace = []

    def factor(self, progress):
        cosine = 0.5 * (1.0 + math.cos(math.pi * min(max(progress, 0.0), 1.0)))
        return self.floor + (1.0 - self.floor) * cosine

    def on_train_start(self, trainer, module):
        self.started = time.monotonic()

    def on_train_batch_start(self, trainer, module, batch, batch_idx):
        step = trainer.global_step
        if step < self.warmup_steps:
            factor = (step + 1) / self.warmup_steps
        else:
            progress = (time.monotonic() - self.started) / self.budget_s  # cause
            factor = self.factor(progress)
        lr = self.base_lr * factor
        for opt in trainer.optimizers:
            for group in opt.param_groups:
                group["lr"] = lr
        self.trace.append(lr)
        module.log("lr", lr, on_step=True, on_epoch=False)


# ------------------------------------------------------------------ evaluation
@torch.no_grad()
def rollout_scores(model, test):
    """Root mean square error per lead time of autoregressive predictions."""
    model.eval()
    state = test[:, 0].clone()
    scores = []
    for lead in range(1, test.shape[1]):
        pred = model(state)
        err = (pred - test[:, lead, :1]).pow(2).mean().sqrt().item()
        scores.append((lead, err))
        state = torch.cat([pred, state[:, 1:]], dim=1)
    return scores


def main():
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, datefmt="%H:%M:%S",
                        format="%(asctime)s %(name)s - %(message)s")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore")
    cfg = CONFIG
    pl.seed_everything(cfg["seed"], workers=True, verbose=False)

    data, model = HeatData(cfg), Emulator(cfg)
    sched = cfg["schedule"]
    schedule = CosineSchedule(cfg["optimizer"]["lr"], sched["warmup_steps"], sched["budget_s"], sched["floor"])
    trainer = pl.Trainer(
        accelerator="cpu", devices=1, max_steps=cfg["max_steps"], deterministic=True,
        logger=CSVLogger(".", name="logs", version="emulator"), log_every_n_steps=10,
        callbacks=[schedule], enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False)
    t0 = time.perf_counter()
    trainer.fit(model, datamodule=data)
    log.info("%d steps in %.2fs, logs in %s", trainer.global_step, time.perf_counter() - t0,
             os.path.abspath("logs"))

    scores = rollout_scores(model, data.test)
    with open("rollout.csv", "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["lead", "rmse"])
        writer.writerows(scores)
    mean = float(np.mean([s for _, s in scores]))
    with open("report.json", "w") as fh:
        json.dump({"config": cfg, "last_lr": schedule.trace[-1], "mean_rmse": mean,
                   "final_rmse": scores[-1][1]}, fh, indent=2)
    for lead, err in scores[::5]:
        log.info("lead %2d rmse %.8f", lead, err)
    log.info("mean rmse %.8f", mean)


if __name__ == "__main__":
    main()
