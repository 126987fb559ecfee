#!/usr/bin/env python
"""Generative model of tabular records trained with Lightning.

Modelled on https://github.com/gretelai/gretel-synthetics/pull/106

Fits a small variational autoencoder to generated customer records, samples
synthetic records from it and compares the marginals with the originals.
"""
import argparse
import json
import logging
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

import lightning.pytorch as pl
import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
log = logging.getLogger("synthetics")


@dataclass
class ModelConfig:
    latent: int = 4
    hidden: int = 48
    learning_rate: float = 3e-3
    beta: float = 0.2
    batch_size: int = 64
    epochs: int = 400
    max_training_time_seconds: float = 0.5
    records: int = 1500
    seed: int = 106


def make_records(n, seed):
    rng = np.random.default_rng(seed)
    age = rng.gamma(9.0, 4.5, n).clip(18, 95)
    tenure = rng.exponential(4.0, n).clip(0, age - 17)
    income = np.exp(9.6 + 0.02 * np.minimum(age, 60) + rng.normal(0, 0.35, n))
    spend = income * rng.beta(2.0, 7.0, n)
    visits = rng.poisson(2 + spend / 4000)
    churn = (rng.random(n) < 1 / (1 + np.exp(1.2 + 0.25 * tenure - 0.08 * visits))).astype(float)
    return pd.DataFrame({"age": age, "tenure": tenure, "income": income, "spend": spend,
                         "visits": visits.astype(float), "churn": churn})


class Codec:
    """Maps records to standardised values and back."""

    log_columns = ("income", "spend")

    def __init__(self, frame):
        self.columns = list(frame.columns)
        z = self._forward(frame)
        self.mean, self.std = z.mean(), z.std()

    def _forward(self, frame):
        out = frame.copy()
        for c in self.log_columns:
            out[c] = np.log(out[c])
        return out

    def encode(self, frame):
        return ((self._forward(frame) - self.mean) / self.std).to_numpy(np.float32)

    def decode(self, values):
        out = pd.DataFrame(values, columns=self.columns) * self.std + self.mean
        for c in self.log_columns:
            out[c] = np.exp(out[c])
        out["visits"] = out["visits"].round().clip(lower=0)
        out["churn"] = (out["churn"] > 0.5).astype(float)
        return out


class TabularVAE(pl.LightningModule):
    def __init__(self, n_columns, cfg: ModelConfig):
        super().__init__()
        self.cfg = cfg
        self.encoder = nn.Sequential(nn.Linear(n_columns, cfg.hidden), nn.SiLU(),
                                     nn.Linear(cfg.hidden, 2 * cfg.latent))
        self.decoder = nn.Sequential(nn.Linear(cfg.latent, cfg.hidden), nn.SiLU(),
                                     nn.Linear(cfg.hidden, n_columns))
        self.losses = []

    def training_step(self, batch, batch_idx):
        (x,) = batch
        mu, logvar = self.encoder(x).chunk(2, dim=1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        rec = nn.functional.mse_loss(self.decoder(z), x)
        kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
        loss = rec + self.cfg.beta * kl / x.shape[1]
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.cfg.learning_rate)

    @torch.no_grad()
    def sample(self, n, generator):
        return self.decoder(torch.randn(n, self.cfg.latent, generator=generator)).numpy()


class TrainingMonitor(pl.Callback):
    """Logs progress and ends the training when it is done."""

    def __init__(self, limit, patience=200, min_delta=1e-4):
        self.limit, self.patience, self.min_delta = limit, patience, min_delta
        self.best, self.since = float("inf"), 0

    def on_train_start(self, trainer, module):
        self.started = time.monotonic()

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if time.monotonic() - self.started > self.limit:  # cause
            trainer.should_stop = True

    def on_train_epoch_end(self, trainer, module):
        recent = float(np.mean(module.losses[-trainer.num_training_batches:]))
        if recent < self.best - self.min_delta:
            self.best, self.since = recent, 0
        else:
            self.since += 1
            if self.since >= self.patience:
                trainer.should_stop = True
        if trainer.current_epoch % 10 == 0:
            log.info("epoch %3d loss %.5f", trainer.current_epoch, recent)


def compare(real, fake):
    rows = []
    for c in real.columns:
        grid = np.quantile(real[c], np.linspace(0, 1, 51))
        cdf = lambda v: np.searchsorted(np.sort(v), grid, side="right") / len(v)
        rows.append({"column": c, "real_mean": real[c].mean(), "fake_mean": fake[c].mean(),
                     "ks": float(np.abs(cdf(real[c]) - cdf(fake[c])).max())})
    return pd.DataFrame(rows)


def main():
    cfg = ModelConfig()
    p = argparse.ArgumentParser()
    for name, value in asdict(cfg).items():
        p.add_argument("--" + name.replace("_", "-"), type=type(value), default=value)
    p.add_argument("--out", type=Path, default=Path("synthetic"))
    args = vars(p.parse_args())
    out = args.pop("out")
    cfg = ModelConfig(**args)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    pl.seed_everything(cfg.seed, workers=True, verbose=False)
    torch.set_num_threads(1)
    out.mkdir(parents=True, exist_ok=True)

    frame = make_records(cfg.records, cfg.seed)
    codec = Codec(frame)
    loader = DataLoader(TensorDataset(torch.from_numpy(codec.encode(frame))), batch_size=cfg.batch_size, shuffle=True)
    model = TabularVAE(len(codec.columns), cfg)
    trainer = pl.Trainer(max_epochs=cfg.epochs, accelerator="cpu", logger=False, enable_checkpointing=False,
                         enable_progress_bar=False, enable_model_summary=False, deterministic=True,
                         callbacks=[TrainingMonitor(cfg.max_training_time_seconds)])
    trainer.fit(model, loader)

    fake = codec.decode(model.sample(2000, torch.Generator().manual_seed(cfg.seed)))
    table = compare(frame, fake)
    table.to_csv(out / "comparison.csv", index=False, float_format="%.6f")
    fake.to_csv(out / "synthetic.csv", index=False, float_format="%.4f")
    result = {"loss": round(float(np.mean(model.losses[-24:])), 7), "ks_mean": round(float(table.ks.mean()), 6)}
    (out / "result.json").write_text(json.dumps(result))
    print(table.round(4).to_string(index=False))
    print(result)


if __name__ == "__main__":
    main()
