"""Modelled on https://github.com/Lightning-Universe/lightning-bolts/issues/140
Trains a small Lightning classifier on drawn glyphs with a data module that holds out a validation part.
"""
import argparse
import csv
import logging
import warnings
from dataclasses import dataclass
from pathlib import Path

import lightning.pytorch as pl
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

warnings.filterwarnings("ignore")
for name in ("lightning.pytorch", "lightning.fabric"):
    logging.getLogger(name).setLevel(logging.ERROR)
log = logging.getLogger("glyphs")


@dataclass
class Hparams:
    seed: int = 1234
    data_seed: int = 8
    n_samples: int = 900
    n_classes: int = 6
    side: int = 12
    noise: float = 0.35
    batch_size: int = 48
    lr: float = 6e-3
    hidden: int = 40
    epochs: int = 8


def draw_glyphs(hp):
    """Bars, boxes and diagonals on a small canvas with noise and offsets."""
    rng = np.random.default_rng(hp.data_seed)
    weights = np.array([0.3, 0.25, 0.2, 0.12, 0.08, 0.05])[: hp.n_classes]
    labels = rng.choice(hp.n_classes, hp.n_samples, p=weights / weights.sum())
    s = hp.side
    images = np.zeros((hp.n_samples, s, s), dtype=np.float32)
    for i, label in enumerate(labels):
        a, b = rng.integers(1, s // 2, 2)
        size = int(rng.integers(3, s // 2 + 1))
        img = images[i]
        if label == 0:
            img[a, b : b + size] = 1
        elif label == 1:
            img[a : a + size, b] = 1
        elif label == 2:
            for k in range(size):
                img[a + k, b + k] = 1
        elif label == 3:
            for k in range(size):
                img[a + k, b + size - 1 - k] = 1
        elif label == 4:
            img[a : a + size, b] = img[a : a + size, b + size - 1] = 1
            img[a, b : b + size] = img[a + size - 1, b : b + size] = 1
        else:
            img[a + size // 2, b : b + size] = 1
            img[a : a + size, b + size // 2] = 1
    images += rng.normal(0, hp.noise, images.shape).astype(np.float32)
    return images.reshape(hp.n_samples, -1), labels.astype(np.int64)


class GlyphDataModule(pl.LightningDataModule):
    def __init__(self, hp, root="data"):
        super().__init__()
        self.hp = hp
        self.file = Path(root) / "glyphs.npz"
        self.train_set = None

    def prepare_data(self):
        if not self.file.exists():
            self.file.parent.mkdir(exist_ok=True)
            images, labels = draw_glyphs(self.hp)
            np.savez(self.file, images=images, labels=labels)

    def setup(self, stage=None):
        if self.train_set is not None:
            return
        blob = np.load(self.file)
        x, y = torch.from_numpy(blob["images"]), torch.from_numpy(blob["labels"])
        n_test = len(x) // 6
        self.test_set = TensorDataset(x[:n_test], y[:n_test])
        full = TensorDataset(x[n_test:], y[n_test:])
        n_val = len(full) // 5
        self.train_set, self.val_set = random_split(full, [len(full) - n_val, n_val])  # cause

    def class_weights(self):
        labels = torch.stack([y for _, y in self.train_set])
        counts = torch.bincount(labels, minlength=self.hp.n_classes).float().clamp(min=1)
        return len(labels) / (self.hp.n_classes * counts)

    def _loader(self, ds, shuffle=False):
        return DataLoader(ds, batch_size=self.hp.batch_size, shuffle=shuffle, num_workers=0)

    def train_dataloader(self):
        return self._loader(self.train_set, shuffle=True)

    def val_dataloader(self):
        return self._loader(self.val_set)

    def test_dataloader(self):
        return self._loader(self.test_set)


class GlyphNet(pl.LightningModule):
    def __init__(self, hp, weights):
        super().__init__()
        self.hp = hp
        self.net = nn.Sequential(
            nn.Linear(hp.side**2, hp.hidden),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(hp.hidden, hp.n_classes),
        )
        self.register_buffer("weights", weights)
        self.history = []
        self._hits = {"val": [0, 0], "test": [0, 0]}
        self._losses = []

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, _):
        x, y = batch
        loss = nn.functional.cross_entropy(self(x), y, weight=self.weights)
        self._losses.append(loss.detach().item())
        return loss

    def _score(self, batch, part):
        x, y = batch
        hit = (self(x).argmax(-1) == y).sum().item()
        self._hits[part][0] += hit
        self._hits[part][1] += len(y)

    def validation_step(self, batch, _):
        self._score(batch, "val")

    def test_step(self, batch, _):
        self._score(batch, "test")

    def on_validation_epoch_end(self):
        hit, n = self._hits["val"]
        self._hits["val"] = [0, 0]
        loss = float(np.mean(self._losses)) if self._losses else float("nan")
        self._losses = []
        self.history.append({"epoch": self.current_epoch, "train_loss": round(loss, 6), "val_acc": round(hit / n, 6)})

    def on_test_epoch_end(self):
        hit, n = self._hits["test"]
        self.test_acc = hit / n

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hp.lr)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=Hparams.epochs)
    hp = Hparams(epochs=ap.parse_args().epochs)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")

    dm = GlyphDataModule(hp)
    dm.prepare_data()
    dm.setup("fit")
    weights = dm.class_weights()
    log.info("train %d val %d test %d", len(dm.train_set), len(dm.val_set), len(dm.test_set))
    print("class weights", [round(w, 4) for w in weights.tolist()])

    pl.seed_everything(hp.seed, workers=True, verbose=False)
    model = GlyphNet(hp, weights)
    trainer = pl.Trainer(
        max_epochs=hp.epochs,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        deterministic=True,
    )
    trainer.fit(model, datamodule=dm)
    trainer.test(model, datamodule=dm, verbose=False)

    for row in model.history:
        print("epoch {epoch} train_loss {train_loss:.6f} val_acc {val_acc:.6f}".format(**row))
    print(f"test_acc {model.test_acc:.6f}")
    with open("history.csv", "w", newline="") as f:
        w = csv.DictWriter(f, fieldnames=["epoch", "train_loss", "val_acc"])
        w.writeheader()
        w.writerows(model.history)
    torch.save(model.net.state_dict(), "glyphnet.pt")


if __name__ == "__main__":
    main()
