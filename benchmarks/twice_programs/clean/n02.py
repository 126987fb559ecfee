"""Lightning: train an MLP regressor on a synthetic concrete-strength-like table.

Logs metrics to CSV (logs/<name>/version_0/metrics.csv) and keeps the best
checkpoint by validation loss.
"""
import json
import os
import socket
import time
import warnings
from datetime import datetime

import lightning as L
import numpy as np
import pandas as pd
import torch
from lightning.pytorch.callbacks import Callback, EarlyStopping, ModelCheckpoint, Timer
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore", ".*does not have many workers.*")

CFG = {"seed": 42, "hidden": 64, "lr": 3e-3, "batch_size": 32, "max_epochs": 6, "n_features": 8}


class ConcreteData(L.LightningDataModule):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg

    def setup(self, stage=None):
        rng = np.random.RandomState(self.cfg["seed"])
        x = rng.uniform(0, 1, size=(1030, self.cfg["n_features"]))
        y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3]
        y = y + rng.normal(scale=0.5, size=len(y))
        x = torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32)
        y = torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32)
        idx = torch.from_numpy(rng.permutation(len(x)))
        tr, va, te = idx[:700], idx[700:860], idx[860:]
        self.train = TensorDataset(x[tr], y[tr])
        self.val = TensorDataset(x[va], y[va])
        self.test = TensorDataset(x[te], y[te])

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.cfg["batch_size"], shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=128)

    def test_dataloader(self):
        return DataLoader(self.test, batch_size=128)


class Regressor(L.LightningModule):
    def __init__(self, n_features, hidden, lr):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Linear(n_features, hidden), nn.SiLU(), nn.Dropout(0.1),
            nn.Linear(hidden, hidden), nn.SiLU(),
            nn.Linear(hidden, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.huber_loss(self(x), y)
        self.log("train_loss", loss, on_step=True, on_epoch=True, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        pred = self(x)
        self.log("val_loss", nn.functional.huber_loss(pred, y), prog_bar=True)
        self.log("val_mae", (pred - y).abs().mean())

    def test_step(self, batch, batch_idx):
        x, y = batch
        pred = self(x)
        self.log("test_mse", nn.functional.mse_loss(pred, y))
        self.log("test_mae", (pred - y).abs().mean())

    def predict_step(self, batch, batch_idx):
        return self(batch[0])

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        sched = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.9)
        return [opt], [sched]


class ThroughputCallback(Callback):
    """Logs seconds per epoch and samples per second, like a hardware monitor would."""

    def on_train_epoch_start(self, trainer, pl_module):
        self.t0 = time.perf_counter()
        self.samples = 0

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.samples += len(batch[0])

    def on_train_epoch_end(self, trainer, pl_module):
        dt = time.perf_counter() - self.t0
        pl_module.log("epoch_seconds", dt)
        pl_module.log("samples_per_sec", self.samples / dt)


def main():
    started = datetime.now()
    L.seed_everything(CFG["seed"], workers=True)
    print(f"Run started {started:%Y-%m-%d %H:%M:%S} on {socket.gethostname()} (pid {os.getpid()})")

    dm = ConcreteData(CFG)
    model = Regressor(CFG["n_features"], CFG["hidden"], CFG["lr"])
    logger = CSVLogger("logs", name="concrete")
    ckpt = ModelCheckpoint(monitor="val_loss", save_top_k=1, filename="{epoch}-{val_loss:.3f}")
    timer = Timer()
    trainer = L.Trainer(
        max_epochs=CFG["max_epochs"], accelerator="cpu", devices=1, logger=logger,
        callbacks=[ckpt, EarlyStopping("val_loss", patience=3), ThroughputCallback(), timer],
        deterministic=True, log_every_n_steps=5, num_sanity_val_steps=0,
    )
    trainer.fit(model, datamodule=dm)
    metrics = trainer.test(model, datamodule=dm)[0]
    preds = torch.cat(trainer.predict(model, dm.test_dataloader()))
    pd.DataFrame({"y_pred": preds.numpy(), "y_true": dm.test.tensors[1].numpy()}).to_csv(
        "predictions.csv", index=False)

    summary = {
        "best_checkpoint": os.path.basename(ckpt.best_model_path),
        "best_val_loss": float(ckpt.best_model_score),
        "test": metrics,
        "fit_seconds": timer.time_elapsed("train"),
        "validate_seconds": timer.time_elapsed("validate"),
        "finished_at": datetime.now().isoformat(timespec="seconds"),
    }
    with open("summary.json", "w") as f:
        json.dump(summary, f, indent=2)
    print(f"best val_loss={summary['best_val_loss']:.6f} test_mae={metrics['test_mae']:.6f}")
    print(f"Total wall time: {(datetime.now() - started).total_seconds():.2f}s")


if __name__ == "__main__":
    main()
