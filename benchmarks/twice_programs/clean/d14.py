"""Style of ashleve/lightning-hydra-template (src/train.py, colorlog, callbacks). Differs in each run: Hydra's output folder
with date, log clock, epoch/time columns of CSVLogger, Timer callback, 'tags' file, config YAML with the paths and run date."""
import logging
import os
import time
from pathlib import Path

import hydra
import torch

_ops = torch.library.Library("torchvision", "DEF")  # the installed torchvision lacks its compiled operators
for _name in ("nms", "qnms"):
    _ops.define(_name + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
import lightning as L
import yaml
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from lightning.pytorch.callbacks import Callback, ModelCheckpoint, Timer
from lightning.pytorch.loggers import CSVLogger
from omegaconf import DictConfig, OmegaConf
from torch.utils.data import DataLoader, TensorDataset

log = logging.getLogger("src.train")
CFG = {"task_name": "train", "seed": 12345, "tags": ["dev"], "data": {"n": 1600, "dim": 20, "batch_size": 32, "num_workers": 0},
       "model": {"lr": 0.005, "hidden": 64}, "trainer": {"max_epochs": 4},
       "hydra": {"run": {"dir": "logs/${task_name}/runs/${now:%Y-%m-%d}_${now:%H-%M-%S}"},
                 "job_logging": {"version": 1, "formatters": {"simple": {"format": "[%(asctime)s][%(name)s][%(levelname)s] - %(message)s"}},
                                 "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "simple", "stream": "ext://sys.stdout"},
                                              "file": {"class": "logging.FileHandler", "formatter": "simple", "filename": "${hydra.runtime.output_dir}/${task_name}.log"}},
                                 "root": {"level": "INFO", "handlers": ["console", "file"]}}}}
ConfigStore.instance().store(name="train", node=OmegaConf.create(CFG))


class Blobs(L.LightningDataModule):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg

    def setup(self, stage=None):
        g = torch.Generator().manual_seed(3)
        x = torch.randn(self.cfg.n, self.cfg.dim, generator=g)
        w = torch.randn(self.cfg.dim, 3, generator=g)
        y = (x @ w + 0.5 * torch.sin(3 * x[:, :3])).argmax(1)
        k = int(0.75 * self.cfg.n)
        self.tr, self.va = TensorDataset(x[:k], y[:k]), TensorDataset(x[k:], y[k:])

    def train_dataloader(self):
        return DataLoader(self.tr, self.cfg.batch_size, shuffle=True, num_workers=self.cfg.num_workers)

    def val_dataloader(self):
        return DataLoader(self.va, 100)

    test_dataloader = val_dataloader


class LitNet(L.LightningModule):
    def __init__(self, dim, hidden, lr):
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Sequential(torch.nn.Linear(dim, hidden), torch.nn.BatchNorm1d(hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 3))

    def step(self, batch):
        x, y = batch
        out = self.net(x)
        return torch.nn.functional.cross_entropy(out, y), (out.argmax(1) == y).float().mean()

    def training_step(self, batch, _):
        loss, acc = self.step(batch)
        self.log("train/loss", loss, on_step=False, on_epoch=True)
        self.log("train/acc", acc, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, _):
        loss, acc = self.step(batch)
        self.log_dict({"val/loss": loss, "val/acc": acc})

    def test_step(self, batch, _):
        loss, acc = self.step(batch)
        self.log_dict({"test/loss": loss, "test/acc": acc})

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


class Throughput(Callback):
    """Logs seconds per epoch and samples per second beside the metrics."""

    def on_train_epoch_start(self, trainer, module):
        self.t0, self.n = time.perf_counter(), 0

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        self.n += len(batch[0])

    def on_train_epoch_end(self, trainer, module):
        dt = time.perf_counter() - self.t0
        module.log("time/epoch_s", dt)
        module.log("time/samples_per_s", self.n / dt)
        log.info("Epoch %d finished in %.2fs, %.0f samples/s", trainer.current_epoch, dt, self.n / dt)


@hydra.main(version_base="1.3", config_path=None, config_name="train")
def main(cfg: DictConfig):
    torch.set_num_threads(1)
    out = Path(HydraConfig.get().runtime.output_dir)
    log.info("Enforcing tags! <cfg.extras.enforce_tags=True>; output dir %s", out)
    (out / "tags.log").write_text("\n".join([*cfg.tags, out.name]))
    L.seed_everything(cfg.seed, workers=True)
    dm, model = Blobs(cfg.data), LitNet(cfg.data.dim, cfg.model.hidden, cfg.model.lr)
    timer = Timer()
    trainer = L.Trainer(max_epochs=cfg.trainer.max_epochs, accelerator="cpu", logger=CSVLogger(out, name="csv", version=""),
                        callbacks=[timer, Throughput(), ModelCheckpoint(out / "checkpoints", monitor="val/acc", mode="max", filename="epoch_{epoch:03d}",
                                                                        auto_insert_metric_name=False)],
                        deterministic=True, enable_progress_bar=False, log_every_n_steps=10)
    log.info("Starting training!")
    trainer.fit(model, dm)
    log.info("Starting testing!")
    test = trainer.test(model, dm, ckpt_path="best", weights_only=False)[0]
    log.info("Best ckpt path: %s", trainer.checkpoint_callback.best_model_path)
    summary = {"run": out.name, "finished": time.strftime("%Y-%m-%d %H:%M:%S %z"), "metrics": {k: float(v) for k, v in test.items()},
               "time": {s: round(timer.time_elapsed(s), 4) for s in ("train", "validate", "test")}, "cwd": os.getcwd()}
    (out / "summary.yaml").write_text(yaml.safe_dump(summary, sort_keys=False))
    print(yaml.safe_dump(summary, sort_keys=False))


if __name__ == "__main__":
    main()
