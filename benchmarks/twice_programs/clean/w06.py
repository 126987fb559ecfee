"""Lightning example: autoencoder + classifier head on synthetic spectra, with the CSV
logger, ModelCheckpoint, EarlyStopping, a Timer and the simple profiler."""
import argparse
import json
import logging
import os
import time
import warnings
from datetime import datetime
from pathlib import Path

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import Callback, EarlyStopping, LearningRateMonitor, ModelCheckpoint, Timer
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.profilers import SimpleProfiler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MulticlassAccuracy

warnings.filterwarnings("ignore", ".*does not have many workers.*")
warnings.filterwarnings("ignore", ".*treespec.*")


def make_spectra(n, bins, classes, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    grid = np.linspace(0, 1, bins)
    centers = np.linspace(0.2, 0.8, classes)
    mu = centers[y][:, None] + rng.normal(0, 0.05, (n, 1))
    sig = 0.04 + 0.03 * rng.random((n, 1))
    x = np.exp(-0.5 * ((grid[None] - mu) / sig) ** 2)
    x += 0.6 * np.exp(-0.5 * ((grid[None] - (1 - mu) ** 2) / 0.05) ** 2)
    x += rng.normal(0, 0.25, x.shape)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


class SpectraData(L.LightningDataModule):
    def __init__(self, bins=64, classes=4, batch_size=32, seed=5):
        super().__init__()
        self.save_hyperparameters()

    def setup(self, stage):
        hp = self.hparams
        self.sets = {s: TensorDataset(*make_spectra(n, hp.bins, hp.classes, hp.seed + i))
                     for i, (s, n) in enumerate([("train", 800), ("val", 240), ("test", 240)])}

    def train_dataloader(self):
        return DataLoader(self.sets["train"], self.hparams.batch_size, shuffle=True, drop_last=True)

    def val_dataloader(self):
        return DataLoader(self.sets["val"], 80)

    def test_dataloader(self):
        return DataLoader(self.sets["test"], 80)


class LitSpectra(L.LightningModule):
    def __init__(self, bins=64, hidden=48, latent=8, classes=4, lr=2e-3, alpha=0.5):
        super().__init__()
        self.save_hyperparameters()
        self.encoder = nn.Sequential(nn.Linear(bins, hidden), nn.GELU(), nn.Dropout(0.1), nn.Linear(hidden, latent))
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.GELU(), nn.Linear(hidden, bins))
        self.head = nn.Linear(latent, classes)
        self.val_acc = MulticlassAccuracy(classes)
        self.test_acc = MulticlassAccuracy(classes)

    def forward(self, x):
        z = self.encoder(x)
        return self.decoder(z), self.head(z)

    def _step(self, batch):
        x, y = batch
        rec, logits = self(x)
        mse = F.mse_loss(rec, x)
        ce = F.cross_entropy(logits, y)
        return ce + self.hparams.alpha * mse, mse, ce, logits

    def training_step(self, batch, idx):
        loss, mse, ce, _ = self._step(batch)
        self.log_dict({"train/loss": loss, "train/mse": mse, "train/ce": ce})
        return loss

    def validation_step(self, batch, idx):
        loss, _, _, logits = self._step(batch)
        self.val_acc(logits, batch[1])
        self.log("val_loss", loss, prog_bar=True)
        self.log("val_acc", self.val_acc, prog_bar=True)

    def test_step(self, batch, idx):
        loss, _, _, logits = self._step(batch)
        self.test_acc(logits, batch[1])
        self.log_dict({"test_loss": loss, "test_acc": self.test_acc})

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        return {"optimizer": opt, "lr_scheduler": torch.optim.lr_scheduler.ExponentialLR(opt, 0.8)}


class EpochTimeLogger(Callback):
    """Log epoch wall time and steps/s as metrics, as many projects do."""

    def on_train_epoch_start(self, trainer, pl_module):
        self._t = time.monotonic()
        self._step = trainer.global_step

    def on_train_epoch_end(self, trainer, pl_module):
        dt = time.monotonic() - self._t
        pl_module.log("epoch_time", dt)
        pl_module.log("steps_per_sec", (trainer.global_step - self._step) / dt)


class PrintEpoch(Callback):
    def on_validation_epoch_end(self, trainer, pl_module):
        if trainer.sanity_checking:
            return
        m = trainer.callback_metrics
        print(f"[{datetime.now():%H:%M:%S}] epoch {trainer.current_epoch} step {trainer.global_step}: "
              f"val_loss={m['val_loss']:.5f} val_acc={m['val_acc']:.4f}")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--max_epochs", type=int, default=4)
    ap.add_argument("--seed", type=int, default=2023)
    ap.add_argument("--logdir", default="lightning_logs")
    args = ap.parse_args()
    torch.set_num_threads(1)
    L.seed_everything(args.seed, workers=True)
    logging.getLogger("lightning.pytorch").setLevel(logging.INFO)

    version = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    csv_logger = CSVLogger(args.logdir, name="spectra", version=version)
    ckpt = ModelCheckpoint(dirpath=Path(csv_logger.log_dir) / "checkpoints", monitor="val_loss",
                           filename="epoch={epoch}-val_loss={val_loss:.3f}", auto_insert_metric_name=False, save_last=True)
    timer = Timer(duration="00:00:30:00")
    profiler = SimpleProfiler(dirpath=csv_logger.log_dir, filename="profile")
    trainer = L.Trainer(
        accelerator="cpu", devices=1, max_epochs=args.max_epochs, deterministic=True,
        logger=csv_logger, profiler=profiler, log_every_n_steps=5,
        enable_progress_bar=False, enable_model_summary=True,
        callbacks=[ckpt, timer, EarlyStopping("val_loss", patience=3), LearningRateMonitor("epoch"),
                   EpochTimeLogger(), PrintEpoch()],
    )
    dm, model = SpectraData(), LitSpectra()
    t0 = time.time()
    trainer.fit(model, datamodule=dm)
    fit_s = time.time() - t0
    test = trainer.test(model, datamodule=dm, ckpt_path="best")[0]

    summary = {
        "version": version,
        "best_model_path": ckpt.best_model_path.replace(os.getcwd() + "/", ""),
        "best_val_loss": float(ckpt.best_model_score),
        "test": test,
        "time_elapsed": {k: timer.time_elapsed(k) for k in ("train", "validate", "test")},
        "fit_wall_s": fit_s,
    }
    with open(Path(args.logdir) / "summary.json", "w") as f:
        json.dump(summary, f, indent=2)
    model.eval()
    with torch.no_grad():
        z = model.encoder(dm.sets["test"].tensors[0])
    np.save(Path(args.logdir) / "test_embeddings.npy", z.numpy())
    print(f"best={summary['best_val_loss']:.5f} test_acc={test['test_acc']:.4f} fit took {fit_s:.2f}s")


if __name__ == "__main__":
    main()
