"""Autoencoder + classifier as LightningModules.

Modelled on Lightning-AI/pytorch-lightning examples (pytorch/basics/autoencoder.py and
backbone_image_classifier.py): seed_everything, CSVLogger, ModelCheckpoint, EarlyStopping,
LearningRateMonitor, tqdm progress bar, a Timer callback logging epoch seconds, trainer.test table.
"""
import json
import time
import warnings

import lightning as L
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchmetrics
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint, TQDMProgressBar
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, TensorDataset, random_split

warnings.filterwarnings('ignore', '.*does not have many workers.*')


class SpiralDataModule(L.LightningDataModule):
    def __init__(self, batch_size=64):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        rng = np.random.default_rng(11)
        n = 1800
        y = rng.integers(0, 3, n)
        r = rng.uniform(0.1, 1, n)
        t = r * 4 + y * 2.1 + rng.normal(0, 0.25, n)
        x = np.stack([r * np.cos(t), r * np.sin(t)], 1)
        x = np.concatenate([x, rng.normal(0, 0.1, (n, 6))], 1) @ rng.normal(size=(8, 8))
        ds = TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y))
        self.train, self.val, self.test = random_split(ds, [1200, 300, 300], generator=torch.Generator().manual_seed(42))

    def train_dataloader(self):
        return DataLoader(self.train, self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, 256)

    def test_dataloader(self):
        return DataLoader(self.test, 256)


class LitClassifier(L.LightningModule):
    def __init__(self, hidden=64, lr=1e-2, recon_weight=0.3):
        super().__init__()
        self.save_hyperparameters()
        self.encoder = nn.Sequential(nn.Linear(8, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.decoder = nn.Linear(hidden, 8)
        self.head = nn.Sequential(nn.Dropout(0.05), nn.Linear(hidden, 3))
        self.val_acc = torchmetrics.Accuracy(task='multiclass', num_classes=3)
        self.test_acc = torchmetrics.Accuracy(task='multiclass', num_classes=3)
        self.test_f1 = torchmetrics.F1Score(task='multiclass', num_classes=3, average='macro')

    def forward(self, x):
        return self.head(self.encoder(x))

    def training_step(self, batch, _):
        x, y = batch
        z = self.encoder(x)
        ce, rec = F.cross_entropy(self.head(z), y), F.mse_loss(self.decoder(z), x)
        self.log_dict({'train_loss': ce, 'train_recon': rec}, on_step=False, on_epoch=True, prog_bar=True)
        return ce + self.hparams.recon_weight * rec

    def validation_step(self, batch, _):
        x, y = batch
        logits = self(x)
        self.val_acc(logits, y)
        self.log('val_loss', F.cross_entropy(logits, y), prog_bar=True)
        self.log('val_acc', self.val_acc, prog_bar=True)

    def test_step(self, batch, _):
        x, y = batch
        logits = self(x)
        self.test_acc(logits, y)
        self.test_f1(logits, y)
        self.log_dict({'test_loss': F.cross_entropy(logits, y), 'test_acc': self.test_acc, 'test_f1': self.test_f1})

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        return [opt], [torch.optim.lr_scheduler.StepLR(opt, 4, gamma=0.5)]


class EpochTimer(L.Callback):
    """Average epoch time, as in Lightning's CUDACallback of the old minGPT example."""

    def __init__(self):
        self.times = []

    def on_train_epoch_start(self, trainer, pl_module):
        self.start_time = time.time()

    def on_train_epoch_end(self, trainer, pl_module):
        epoch_time = time.time() - self.start_time
        self.times.append(epoch_time)
        pl_module.log('epoch_time', epoch_time)
        print(f'Average Epoch time: {epoch_time:.2f} seconds')


def cli_main():
    L.seed_everything(42, workers=True)
    dm, model = SpiralDataModule(), LitClassifier()
    timer = EpochTimer()
    ckpt = ModelCheckpoint(monitor='val_loss', filename='{epoch}-{val_loss:.4f}', save_top_k=2, save_last=True)
    trainer = L.Trainer(max_epochs=12, accelerator='cpu', deterministic=True, logger=CSVLogger('logs', name='spiral'), log_every_n_steps=5,
                        callbacks=[ckpt, EarlyStopping('val_loss', patience=4, verbose=True), LearningRateMonitor('epoch'),
                                   TQDMProgressBar(refresh_rate=5), timer])
    t0 = time.time()
    trainer.fit(model, datamodule=dm)
    fit_time = time.time() - t0
    res = trainer.test(ckpt_path='best', datamodule=dm, weights_only=False)
    with open('results.json', 'w') as f:
        json.dump({'test': res[0], 'best_model_score': ckpt.best_model_score.item(), 'best_model_path': ckpt.best_model_path.split('/logs/')[-1],
                   'epochs': trainer.current_epoch, 'fit_time_sec': fit_time, 'mean_epoch_time': float(np.mean(timer.times)),
                   'finished_at': time.strftime('%Y-%m-%dT%H:%M:%S')}, f, indent=2)
    print(f'Training took {fit_time:.1f}s, best checkpoint score {ckpt.best_model_score:.6f}')


if __name__ == '__main__':
    cli_main()
