"""Lightning training: tabular autoencoder with regression head with CSV and TensorBoard loggers."""
import json
import logging
import time
from argparse import ArgumentParser
from pathlib import Path

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import Callback, EarlyStopping, LearningRateMonitor, ModelCheckpoint, Timer
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

logging.basicConfig(format="%(asctime)s %(levelname)-8s %(name)s: %(message)s", level=logging.INFO)
log = logging.getLogger("train")


class EnergyDataModule(L.LightningDataModule):
    def __init__(self, n_samples: int = 1600, n_features: int = 12, batch_size: int = 64, seed: int = 42):
        super().__init__()
        self.save_hyperparameters()

    def setup(self, stage=None):
        if hasattr(self, "train_set"):
            return
        rng = np.random.default_rng(self.hparams.seed)
        x = rng.normal(size=(self.hparams.n_samples, self.hparams.n_features)).astype(np.float32)
        w = rng.normal(size=self.hparams.n_features).astype(np.float32)
        y = np.sin(x @ w * 0.5) + 0.3 * x[:, 0] * x[:, 1] + rng.normal(0, 0.1, len(x)).astype(np.float32)
        full = TensorDataset(torch.from_numpy(x), torch.from_numpy(y.astype(np.float32)))
        gen = torch.Generator().manual_seed(self.hparams.seed)
        n = len(full)
        self.train_set, self.val_set, self.test_set = random_split(
            full, [int(0.7 * n), int(0.15 * n), n - int(0.7 * n) - int(0.15 * n)], generator=gen)

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.hparams.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=256)

    def test_dataloader(self):
        return DataLoader(self.test_set, batch_size=256)

    predict_dataloader = test_dataloader


class Regressor(L.LightningModule):
    def __init__(self, n_features: int = 12, hidden: int = 48, latent: int = 8, lr: float = 3e-3, alpha: float = 0.1):
        super().__init__()
        self.save_hyperparameters()
        self.encoder = nn.Sequential(nn.Linear(n_features, hidden), nn.SiLU(), nn.Dropout(0.1), nn.Linear(hidden, latent))
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.SiLU(), nn.Linear(hidden, n_features))
        self.head = nn.Sequential(nn.SiLU(), nn.Linear(latent, 1))

    def forward(self, x):
        return self.head(self.encoder(x)).squeeze(-1)

    def _step(self, batch, stage):
        x, y = batch
        z = self.encoder(x)
        recon = F.mse_loss(self.decoder(z), x)
        pred = self.head(z).squeeze(-1)
        mse = F.mse_loss(pred, y)
        loss = mse + self.hparams.alpha * recon
        self.log_dict({f"{stage}/loss": loss, f"{stage}/mse": mse, f"{stage}/recon": recon},
                      on_step=False, on_epoch=True, prog_bar=(stage == "val"))
        return loss

    def training_step(self, batch, batch_idx):
        return self._step(batch, "train")

    def validation_step(self, batch, batch_idx):
        self._step(batch, "val")

    def test_step(self, batch, batch_idx):
        self._step(batch, "test")

    def predict_step(self, batch, batch_idx):
        return self(batch[0])

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        return {"optimizer": opt, "lr_scheduler": torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=6)}


class EpochTimeCallback(Callback):
    """Logs the wall time of each epoch next to the metrics."""

    def on_train_epoch_start(self, trainer, pl_module):
        self._t0 = time.perf_counter()
        self._seen = 0

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self._seen += len(batch[0])

    def on_train_epoch_end(self, trainer, pl_module):
        dt = time.perf_counter() - self._t0
        pl_module.log("time/epoch_s", dt)
        pl_module.log("time/samples_per_s", self._seen / dt)


def main():
    parser = ArgumentParser()
    parser.add_argument("--max_epochs", type=int, default=6)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--default_root_dir", type=str, default="logs")
    args = parser.parse_args()

    L.seed_everything(args.seed, workers=True)
    dm = EnergyDataModule(seed=args.seed)
    model = Regressor()
    root = Path(args.default_root_dir)
    csv_logger = CSVLogger(root, name="csv")
    tb_logger = TensorBoardLogger(root, name="tb")
    ckpt = ModelCheckpoint(dirpath=root / "checkpoints", monitor="val/loss", mode="min", save_top_k=1,
                           filename="best-{epoch:02d}", auto_insert_metric_name=False)
    timer = Timer()
    trainer = L.Trainer(
        max_epochs=args.max_epochs, accelerator="cpu", devices=1, deterministic=True,
        logger=[csv_logger, tb_logger],
        callbacks=[ckpt, EarlyStopping("val/loss", patience=4), LearningRateMonitor(), EpochTimeCallback(), timer],
        log_every_n_steps=5, default_root_dir=root)
    log.info("Starting training")
    trainer.fit(model, dm)
    log.info("Training took %.2f s, best checkpoint %s (val/loss %.6f)", timer.time_elapsed("train"),
             Path(ckpt.best_model_path).name, ckpt.best_model_score)
    metrics = trainer.test(model, dm, ckpt_path="best", weights_only=False)[0]
    preds = torch.cat(trainer.predict(model, dm, ckpt_path="best", weights_only=False)).numpy()
    np.save(root / "test_predictions.npy", preds)
    with open(root / "test_metrics.json", "w") as f:
        json.dump({**metrics, "best_epoch": int(ckpt.best_model_path[-7:-5]), "n_test": len(preds)}, f, indent=2)
    log.info("Done")


if __name__ == "__main__":
    main()
