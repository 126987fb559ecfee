"""LightningModule with CSV and TensorBoard loggers, callbacks and DataLoader workers, in the style of a lightning-hydra-template project."""
import argparse
import json
import logging
import platform
import time
from datetime import datetime
from pathlib import Path

import lightning as L
import torch
import torch.nn.functional as F
import torchmetrics
import yaml
from lightning.pytorch.callbacks import DeviceStatsMonitor, EarlyStopping, LearningRateMonitor, ModelCheckpoint, Timer
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

log = logging.getLogger("train")


class SensorWindows(Dataset):
    """Multi-channel windows of a few known waveforms."""

    def __init__(self, n=1800, length=64, channels=3, seed=11):
        g = torch.Generator().manual_seed(seed)
        t = torch.linspace(0, 1, length)
        self.y = torch.randint(0, 4, (n,), generator=g)
        freq = 3.0 + 2.0 * self.y.float()
        phase = torch.rand(n, channels, generator=g) * 6.2832
        clean = torch.sin(6.2832 * freq[:, None, None] * t + phase[:, :, None])
        self.x = clean + 1.1 * torch.randn(n, channels, length, generator=g)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        x = self.x[i]
        if i % 2:
            x = torch.flip(x, dims=[0])
        return x, self.y[i]


class SensorDataModule(L.LightningDataModule):
    def __init__(self, batch_size=64, num_workers=2):
        super().__init__()
        self.save_hyperparameters()

    def setup(self, stage=None):
        full = SensorWindows()
        perm = torch.randperm(len(full), generator=torch.Generator().manual_seed(5)).tolist()
        self.train_set, self.val_set, self.test_set = (Subset(full, perm[a:b]) for a, b in
                                                       ((0, 1200), (1200, 1500), (1500, 1800)))

    def _loader(self, ds, shuffle=False):
        return DataLoader(ds, self.hparams.batch_size, shuffle=shuffle, num_workers=self.hparams.num_workers,
                          persistent_workers=self.hparams.num_workers > 0)

    def train_dataloader(self):
        return self._loader(self.train_set, shuffle=True)

    def val_dataloader(self):
        return self._loader(self.val_set)

    def test_dataloader(self):
        return self._loader(self.test_set)


class ConvClassifier(L.LightningModule):
    def __init__(self, width=24, lr=4e-3, classes=4):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Conv1d(3, width, 7, padding=3), nn.BatchNorm1d(width), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(width, width, 5, padding=2), nn.BatchNorm1d(width), nn.ReLU(), nn.AdaptiveAvgPool1d(4),
            nn.Flatten(), nn.Dropout(0.2), nn.Linear(4 * width, classes))
        self.train_acc = torchmetrics.Accuracy(task="multiclass", num_classes=classes)
        self.val_acc = torchmetrics.Accuracy(task="multiclass", num_classes=classes)
        self.test_acc = torchmetrics.Accuracy(task="multiclass", num_classes=classes)
        self.val_best = torchmetrics.MaxMetric()

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, _):
        x, y = batch
        logits = self(x)
        loss = F.cross_entropy(logits, y)
        self.train_acc(logits, y)
        self.log("train/loss", loss, on_step=True, on_epoch=True, prog_bar=True)
        self.log("train/acc", self.train_acc, on_step=False, on_epoch=True)
        return loss

    def on_train_epoch_start(self):
        self._t_epoch = time.perf_counter()

    def on_train_epoch_end(self):
        self.log("time/epoch_seconds", time.perf_counter() - self._t_epoch)

    def validation_step(self, batch, _):
        x, y = batch
        logits = self(x)
        self.val_acc(logits, y)
        self.log("val/loss", F.cross_entropy(logits, y), prog_bar=True)
        self.log("val/acc", self.val_acc, prog_bar=True)

    def on_validation_epoch_end(self):
        self.val_best(self.val_acc.compute())
        self.log("val/acc_best", self.val_best.compute(), sync_dist=True)

    def test_step(self, batch, _):
        x, y = batch
        logits = self(x)
        self.test_acc(logits, y)
        self.log("test/loss", F.cross_entropy(logits, y))
        self.log("test/acc", self.test_acc)

    def predict_step(self, batch, _):
        return self(batch[0]).argmax(1)

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        return {"optimizer": opt, "lr_scheduler": torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=6)}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--seed", type=int, default=12345)
    ap.add_argument("--workers", type=int, default=2)
    args = ap.parse_args()
    run_dir = Path("logs/train/runs") / datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    run_dir.mkdir(parents=True)
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s][%(name)s][%(levelname)s] - %(message)s",
                        handlers=[logging.FileHandler(run_dir / "train.log"), logging.StreamHandler()])
    (run_dir / ".hydra").mkdir()
    (run_dir / ".hydra" / "config.yaml").write_text(yaml.safe_dump(
        {"seed": args.seed, "trainer": {"max_epochs": args.epochs}, "paths": {"output_dir": str(run_dir)}}))
    log.info(f"Host {platform.node()}; torch {torch.__version__}; lightning {L.__version__}")
    torch.set_num_threads(1)
    L.seed_everything(args.seed, workers=True)

    dm = SensorDataModule(num_workers=args.workers)
    model = ConvClassifier()
    timer = Timer()
    ckpt = ModelCheckpoint(run_dir / "checkpoints", filename="epoch_{epoch:03d}", monitor="val/acc", mode="max",
                           auto_insert_metric_name=False, save_last=True)
    trainer = L.Trainer(max_epochs=args.epochs, accelerator="cpu", devices=1, deterministic=True, log_every_n_steps=5,
                        callbacks=[ckpt, EarlyStopping("val/acc", mode="max", patience=100), timer,
                                   LearningRateMonitor(), DeviceStatsMonitor(cpu_stats=True)],
                        logger=[CSVLogger(run_dir, name="csv"), TensorBoardLogger(run_dir, name="tensorboard")])
    log.info("Starting training!")
    trainer.fit(model, dm)
    log.info("Starting testing!")
    test = trainer.test(model, dm, ckpt_path="best", weights_only=False)[0]
    preds = torch.cat(trainer.predict(model, dm.test_dataloader()))
    torch.save(preds, run_dir / "test_predictions.pt")
    summary = {"best_model_path": ckpt.best_model_path, "best_val_acc": float(ckpt.best_model_score), **test,
               "pred_histogram": torch.bincount(preds, minlength=4).tolist(),
               "fit_seconds": timer.time_elapsed("train"), "finished_at": datetime.now().isoformat()}
    (run_dir / "summary.json").write_text(json.dumps(summary, indent=2))
    log.info(f"Best ckpt path: {ckpt.best_model_path}")
    log.info(f"Time in fit: {timer.time_elapsed('train'):.2f}s train, {timer.time_elapsed('validate'):.2f}s val")
    print(f"test/acc={test['test/acc']:.4f} test/loss={test['test/loss']:.4f} histogram={summary['pred_histogram']}")


if __name__ == "__main__":
    main()
